/** Holds a backend's whole answer within the memory budget, as content for a JSON-RPC message. */

import { ANSWER_BUFFER_BYTES, type BackendAnswer, BackendError } from '../../backend/backend-exchange.ts';
import type { Json } from '../../json/json.ts';
import type { Admitted } from '../../limiter.ts';
import type { Relayed } from '../../pipeline/call.ts';
import { isEncoded, isJsonType } from '../../server/http/request.ts';
import type { AnswerBudget } from '../../server/limits/load-shedding.ts';

/** Largest answer that a JSON-RPC message carries, bytes (contract 3, response size). */
export const MAX_BUFFERED_BYTES = 1_048_576;

/** An answer as a JSON message can carry it. */
export type AnswerContent =
  /** `text`: the backend's own spelling; in a message it keeps all digits of numbers. */
  | { readonly kind: 'json'; readonly text: string; readonly value: Json }
  | { readonly kind: 'text'; readonly text: string; readonly mediaType: string }
  /** `contentEncoding`: set when the backend compressed although it was asked not to. */
  | {
      readonly kind: 'bytes';
      readonly base64: string;
      readonly mediaType: string;
      readonly contentEncoding: string | undefined;
    }
  | { readonly kind: 'empty' };

/** The budget that the memory for an answer is taken from, and whether the answer is paid. */
interface Reservation {
  readonly budget: AnswerBudget;
  readonly paid: boolean;
}

/**
 * Reads an answer to its end and passes it to `send`; an answer that breaks off is not sent. The
 * exchange bounds size and time. The budget bounds the memory of all answers beyond the buffers of
 * connections, until `send` has sent the message. `busy`: no memory became free in time; the rest
 * of the answer can still be read.
 */
export async function withContent(
  answer: BackendAnswer,
  reservation: Reservation,
  send: (content: AnswerContent) => Promise<Relayed>,
): Promise<Relayed> {
  const { headers, whole } = answer;
  const held = whole === undefined ? await readWhole(answer, reservation) : unreserved(whole);
  if (held.kind !== 'whole') return held;
  try {
    return await send(readContent(held.bytes, single(headers['content-type']), single(headers['content-encoding'])));
  } finally {
    held.release();
  }
}

/** All of an answer; its memory stays reserved until `release` is called. */
interface WholeAnswer {
  readonly kind: 'whole';
  readonly bytes: Uint8Array;
  readonly release: () => void;
}
/** An answer that the connection holds anyway. */
function unreserved(bytes: Uint8Array): WholeAnswer {
  return { kind: 'whole', bytes, release: () => undefined };
}

type NotWhole = Exclude<Relayed, { readonly kind: 'finished' }>;

async function readWhole(
  { headers, body }: BackendAnswer,
  { budget, paid }: Reservation,
): Promise<WholeAnswer | NotWhole> {
  const declared = Number(headers['content-length'] ?? Number.NaN);
  let held: Admitted | undefined;
  const rank = paid ? 'paid' : 'free';
  try {
    // An answer that fits into the connection's buffer is read without a reservation.
    if (declared > ANSWER_BUFFER_BYTES) {
      // A reader that keeps a copy of the answer may have set it flowing.
      body.pause();
      held = await budget.wait({ rank, size: declared });
      if (held === undefined) return { kind: 'busy' };
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      size += (chunk as Uint8Array).byteLength;
      chunks.push(chunk as Uint8Array);
      if (size <= ANSWER_BUFFER_BYTES || held !== undefined) continue;
      // An answer without a declared length may become as long as any answer.
      held = await budget.wait({ rank, size: MAX_BUFFERED_BYTES });
      if (held === undefined) return { kind: 'busy' };
    }
    const bytes = Buffer.concat(chunks);
    const given = held;
    held = undefined;
    return { kind: 'whole', bytes, release: () => given?.leave() };
  } catch (thrown) {
    const error = thrown instanceof BackendError ? thrown : new BackendError('transport', true, thrown);
    // `aborted`: the gateway ended a free call whose caller left.
    return error.reason === 'aborted' ? { kind: 'client_gone' } : { kind: 'broken', error };
  } finally {
    held?.leave();
  }
}

/** Media types of text. An answer without a type is tried as JSON, then as text. */
const TEXT_TYPE = /^(?:text\/|application\/(?:xml|yaml|x-ndjson|javascript)\b|[\w.-]+\/[\w.+-]+\+(?:xml|yaml)\b)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;
const UNKNOWN_TYPE = 'application/octet-stream';
// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that text does not have, and that JSON writes in six bytes.
const CONTROL = /[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/;

/** The content of bytes that are held already. Media types are as the backend sent them. */
export function readContent(
  bytes: Uint8Array,
  contentType: string | undefined,
  contentEncoding: string | undefined,
): AnswerContent {
  if (bytes.byteLength === 0) return { kind: 'empty' };
  const mediaType = contentType ?? UNKNOWN_TYPE;
  const encoded = isEncoded(contentEncoding);
  const isJson = contentType === undefined || isJsonType(contentType);
  const text = encoded || !(isJson || TEXT_TYPE.test(mediaType)) ? undefined : decoded(bytes, mediaType);
  if (text === undefined || CONTROL.test(text)) {
    const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    return { kind: 'bytes', base64, mediaType, contentEncoding: encoded ? contentEncoding : undefined };
  }
  const value = isJson ? parsed(text) : undefined;
  return value === undefined ? { kind: 'text', text, mediaType } : { kind: 'json', text, value };
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Undefined when the bytes are not text in their charset. */
function decoded(bytes: Uint8Array, mediaType: string): string | undefined {
  const charset = CHARSET.exec(mediaType)?.[1];
  try {
    const decoder = charset === undefined ? UTF_8 : new TextDecoder(charset, { fatal: true });
    return decoder.decode(bytes);
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
