import { isObject } from '../../json/object.ts';
import type { Json, JsonObject } from '../../json/types.ts';
import type { MirroredParameter } from '../../resources/mirrored-headers.ts';
import type { HeaderReading } from '../../server/http/headers.ts';

/** Reads a header by its lower-case name. */
export type HeaderOf = (name: string) => HeaderReading;

const ENCODED = /^=\?base64\?(.*)\?=$/s;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The value of a header that repeats a part of the body (2026-07-28, "Value Encoding"): plain, or base64 of UTF-8 between `=?base64?`
 * and `?=`. Undefined when what stands between them is not canonical.
 */
export function decodeMirrored(value: string): string | undefined {
  const encoded = ENCODED.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** The first header that does not say what the arguments say, or undefined ("Server Behavior for Custom Headers"). */
export function disagreeing(
  parameters: readonly MirroredParameter[],
  input: JsonObject,
  headerOf: HeaderOf,
): string | undefined {
  return parameters.find(({ header, path, type }) => {
    const value = valueAt(input, path);
    // What is not in the body is not expected in the header, and nobody acts on it here.
    if (value === undefined || value === null || typeof value === 'object') return false;
    const reading = headerOf(header);
    const decoded = reading.kind === 'single' ? decodeMirrored(reading.value) : undefined;
    if (decoded === undefined) return true;
    const sameNumber =
      type === 'integer' && typeof value === 'number' && DECIMAL.test(decoded) && Number(decoded) === value;
    return !sameNumber && decoded !== String(value);
  })?.header;
}

function valueAt(input: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = input;
  for (const name of path) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value;
}
