import { type BackendAnswer, BackendError } from '../../backend/exchange.ts';
import type { Json } from '../../json/types.ts';
import type { Relayed } from '../../pipeline/call.ts';
import { isEncoded, isJsonType } from '../../server/http/headers.ts';
import type { AnswerBudget } from '../../server/load-shedding/answer-budget.ts';

/**
 * Largest answer of the merchant that is carried inside a JSON-RPC message, bytes (contract 3,
 * response size).
 */
export const MAX_BUFFERED_BYTES = 1_048_576;

/** What the merchant answered, as a JSON message can carry it. */
export type AnswerContent =
  /**
   * `text` is the merchant's own spelling: put into a message as it is, no number loses a digit.
   */
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

/**
 * What is read of any answer without asking for room, bytes: as much as lies in the buffers of its
 * connection anyway.
 */
export const UNRESERVED_BYTES = 65_536;

/** Where an answer is held, and whether it was paid for. */
interface AnswerRoom {
  readonly budget: AnswerBudget;
  readonly paid: boolean;
}

/**
 * Reads an answer to its end, or to where it broke off: nothing has been sent then. The exchange
 * bounds size and time, the budget how much of all answers is held at the same time, from before it
 * is read until `send` has sent what was made of it. `busy`: no room came in time; the rest of the
 * answer can still be read.
 */
export async function withContent(
  answer: BackendAnswer,
  room: AnswerRoom,
  send: (content: AnswerContent) => Promise<Relayed>,
): Promise<Relayed> {
  const held = await read(answer, room);
  if (held.kind !== 'whole') return held;
  const { headers } = answer;
  try {
    return await send(readContent(held.bytes, single(headers['content-type']), single(headers['content-encoding'])));
  } finally {
    held.release();
  }
}

/** All of an answer, and the room it takes until `release` is called. */
interface WholeAnswer {
  readonly kind: 'whole';
  readonly bytes: Uint8Array;
  readonly release: () => void;
}
type NotWhole = Exclude<Relayed, { readonly kind: 'finished' }>;

async function read({ headers, body }: BackendAnswer, { budget, paid }: AnswerRoom): Promise<WholeAnswer | NotWhole> {
  const declared = Number(headers['content-length'] ?? Number.NaN);
  let release: (() => void) | undefined;
  try {
    if (declared > UNRESERVED_BYTES) {
      // Somebody who keeps the answer may have set it flowing.
      body.pause();
      release = await budget.reserve({ bytes: declared, paid });
      if (release === undefined) return { kind: 'busy' };
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      size += (chunk as Uint8Array).byteLength;
      chunks.push(chunk as Uint8Array);
      if (size <= UNRESERVED_BYTES || release !== undefined) continue;
      // Nobody said how long it gets, so it may get as long as any.
      release = await budget.reserve({ bytes: MAX_BUFFERED_BYTES, paid });
      if (release === undefined) return { kind: 'busy' };
    }
    const bytes = Buffer.concat(chunks);
    const given = release;
    release = undefined;
    return { kind: 'whole', bytes, release: () => given?.() };
  } catch (thrown) {
    const error = thrown instanceof BackendError ? thrown : new BackendError('transport', true, thrown);
    // `aborted` is our own doing: a free call whose caller left.
    return error.reason === 'aborted' ? { kind: 'client_gone' } : { kind: 'broken', error };
  } finally {
    release?.();
  }
}

/**
 * Types that are text whatever their charset is called, and nothing at all, which is tried as JSON
 * and as text.
 */
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
