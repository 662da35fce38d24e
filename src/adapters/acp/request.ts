import type { IncomingMessage, ServerResponse } from 'node:http';
import { ACP_VERSION, type Operation } from '../../checkouts/operations.ts';
import { JsonError, parseStrictJson } from '../../json/strict.ts';
import type { Json } from '../../json/types.ts';
import { readBytes } from '../../server/http/body.ts';
import { isEncoded, readHeader } from '../../server/http/headers.ts';
import { AcpError } from './error.ts';

/** The headers of a checkout call that decide whether it is served (acp 2.1). */

/**
 * Those that are refused here when they come twice, as 401 and 415: the shared check of all
 * requests leaves them to us.
 */
export const JUDGED_FIELDS = ['authorization', 'content-type'] as const;

/** Between the white space that HTTP knows; a no-break space is none of it. */
const KEY = /^[ \t]*([!-~](?:[ -~]{0,253}[!-~])?)[ \t]*$/;
const BLANK = /^[ \t]*$/;

/** @throws AcpError missing_api_version, unsupported_api_version */
export function checkVersion(req: IncomingMessage): void {
  const version = readHeader(req, 'api-version');
  if (version.kind === 'single' && version.value === ACP_VERSION) return;
  const missing = version.kind === 'absent' || (version.kind === 'single' && version.value === '');
  throw new AcpError(missing ? 'missing_api_version' : 'unsupported_api_version', {
    supportedVersions: [ACP_VERSION],
  });
}

/**
 * The caller's name for what he wants done once.
 * @throws AcpError idempotency_key_required, idempotency_key_invalid
 */
export function idempotencyKeyOf(req: IncomingMessage): string {
  const key = legibleKeyOf(req);
  if (key !== undefined) return key;
  const given = req.headers['idempotency-key'];
  const nothing = given === undefined || (typeof given === 'string' && BLANK.test(given));
  throw new AcpError(nothing ? 'idempotency_key_required' : 'idempotency_key_invalid');
}

/** The same for an echo: undefined when there is none that is right. */
export function legibleKeyOf(req: IncomingMessage): string | undefined {
  const header = readHeader(req, 'idempotency-key');
  if (header.kind !== 'single') return undefined;
  const [, key] = KEY.exec(header.value) ?? [];
  return key;
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
/** RFC 9110, 5.6.6: there may be none behind the semicolon. */
const PARAMETER = `;[ \\t]*(?:(${TOKEN})=(${TOKEN}|"(?:[^"\\\\]|\\\\.)*")[ \\t]*)?`;
const JSON_TYPE = new RegExp(`^application/json[ \\t]*((?:${PARAMETER})*)$`, 'i');
const PARAMETERS = new RegExp(PARAMETER, 'gi');
const UTF8 = /^"?utf-8"?$/i;

/**
 * The type and the coding of a body, before any of it is read. What has no type may only be empty.
 * @returns the content type; undefined when there is none
 * @throws AcpError unsupported_media_type
 */
export function checkMediaType(req: IncomingMessage): string | undefined {
  const type = readHeader(req, 'content-type');
  const declared = Number(req.headers['content-length'] ?? 0);
  const served = type.kind === 'absent' ? declared === 0 : type.kind === 'single' && isJsonInUtf8(type.value);
  if (!served || isEncoded(req.headers['content-encoding'])) throw new AcpError('unsupported_media_type');
  return type.kind === 'single' ? type.value : undefined;
}

function isJsonInUtf8(mediaType: string): boolean {
  const parameters = JSON_TYPE.exec(mediaType)?.[1];
  if (parameters === undefined) return false;
  return [...parameters.matchAll(PARAMETERS)].every(
    ([, name = '', value = '']) => name.toLowerCase() !== 'charset' || UTF8.test(value),
  );
}

/** Longest echo, characters. */
const MAX_ECHO = 128;
const PRINTABLE = /^[ -~]+$/;

/**
 * The caller's own id of the request, as it is echoed and told to the merchant (acp 2.1): never an
 * error, and never the name of anything here. Undefined when there is none that can be echoed.
 */
export function callerRequestIdOf(req: IncomingMessage): string | undefined {
  const given = readHeader(req, 'request-id');
  if (given.kind !== 'single' || !PRINTABLE.test(given.value)) return undefined;
  return given.value.slice(0, MAX_ECHO).trimEnd();
}

/** A body as it came, and the JSON in it. */
interface CheckoutBody {
  /** Undefined where there is none: reading, and a bare cancel. */
  readonly bytes: Uint8Array | undefined;
  readonly value: Json;
}

const NOTHING: CheckoutBody = { bytes: undefined, value: {} };

/**
 * Reads what an operation is given. The bytes are kept as they came, for the merchant (acp 13.2);
 * that is only safe because no parser can read them in two ways. `contentType`: what
 * `checkMediaType` found.
 * @throws AcpError invalid_json; GatewayError of `readBytes`
 */
export async function readBody(
  { operation, contentType }: { readonly operation: Operation; readonly contentType: string | undefined },
  req: IncomingMessage,
  res: ServerResponse,
): Promise<CheckoutBody> {
  if (operation === 'getCheckoutSession') return NOTHING;
  const bytes = await readBytes(req, res, contentType === undefined);
  if (bytes.length === 0 && operation === 'cancelCheckoutSession') return NOTHING;
  if (bytes.length === 0)
    throw new AcpError('invalid_json', { message: 'The body is empty; it must be a JSON object.' });
  try {
    return { bytes, value: parseStrictJson(bytes) };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    throw new AcpError('invalid_json', { message: thrown.message });
  }
}
