import type { Relayed } from '../../call.ts';
import { isJsonType } from '../../http/media-type.ts';
import type { Json } from '../../json/types.ts';
import { type BackendAnswer, BackendError } from '../../merchant/types.ts';

/** Largest answer of the merchant that is carried inside a JSON-RPC message, bytes (CONTRACT 3, response size). */
export const MAX_BUFFERED_BYTES = 1_048_576;

/** What the merchant answered, as a JSON message can carry it. */
export type AnswerContent =
  /** `text` is the merchant's own spelling: put into a message as it is, no number loses a digit. */
  | { readonly kind: 'json'; readonly text: string; readonly value: Json }
  | { readonly kind: 'text'; readonly text: string; readonly mediaType: string }
  /** `contentEncoding`: set when the merchant compressed although it was asked not to. */
  | {
      readonly kind: 'bytes';
      readonly base64: string;
      readonly mediaType: string;
      readonly contentEncoding: string | undefined;
    }
  | { readonly kind: 'empty' };

/** Reads an answer to its end, or to where it broke off: nothing has been sent then. The exchange bounds size and time. */
export async function contentOf({ headers, body }: BackendAnswer): Promise<AnswerContent | Exclude<Relayed, Finished>> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of body) chunks.push(chunk as Uint8Array);
  } catch (thrown) {
    const error = thrown instanceof BackendError ? thrown : new BackendError('transport', true, thrown);
    // `aborted` is our own doing: a free call whose caller left.
    return error.reason === 'aborted' ? { kind: 'client_gone' } : { kind: 'broken', error };
  }
  return readContent(Buffer.concat(chunks), single(headers['content-type']), single(headers['content-encoding']));
}

type Finished = { readonly kind: 'finished' };

/** Types that are text whatever their charset is called, and nothing at all, which is tried as JSON and as text. */
const TEXT_TYPE = /^(?:text\/|application\/(?:xml|yaml|x-ndjson|javascript)\b|[\w.-]+\/[\w.+-]+\+(?:xml|yaml)\b)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;
const UNKNOWN_TYPE = 'application/octet-stream';
// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that no text has, and that a message would hold sixfold.
const CONTROL = /[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/;

/** The same for bytes that are there already. Media types are as the merchant sent them. */
export function readContent(
  bytes: Uint8Array,
  contentType: string | undefined,
  contentEncoding: string | undefined,
): AnswerContent {
  if (bytes.byteLength === 0) return { kind: 'empty' };
  const mediaType = contentType ?? UNKNOWN_TYPE;
  const encoded = contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'identity';
  const isJson = contentType === undefined || isJsonType(contentType);
  const text = encoded || !(isJson || TEXT_TYPE.test(mediaType)) ? undefined : decoded(bytes, mediaType);
  if (text === undefined || CONTROL.test(text)) {
    const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    return { kind: 'bytes', base64, mediaType, contentEncoding: encoded ? contentEncoding : undefined };
  }
  const value = isJson ? parsed(text) : undefined;
  return value === undefined ? { kind: 'text', text, mediaType } : { kind: 'json', text, value };
}

/** Undefined when the bytes are not the text that their type promises. */
function decoded(bytes: Uint8Array, mediaType: string): string | undefined {
  try {
    return new TextDecoder(CHARSET.exec(mediaType)?.[1] ?? 'utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function single(field: BackendAnswer['headers'][string]): string | undefined {
  return typeof field === 'string' ? field : field?.[0];
}
