/** Copies a paid answer while it is relayed, so that the record can keep it for its buyer. */

import { Readable } from 'node:stream';
import type { BackendAnswer } from '../../backend/exchange.ts';
import { relayedHeaders } from '../../backend/header-policy.ts';
import { ANSWER_BUFFER_BYTES } from '../../backend/received-answer.ts';
import { type KeptAnswer, MAX_KEPT_BYTES } from '../../payments/ledger/ledger.ts';

interface CapturedAnswer {
  /** Undefined when the answer broke off, or when it is too large. */
  readonly answer: KeptAnswer | undefined;
  readonly tooLarge: boolean;
}

/**
 * Copies an answer while a response writer reads it. Call it before the reader is attached, in the
 * same turn; ask the result once the answer has ended.
 */
export function captureAnswer(answer: BackendAnswer): () => CapturedAnswer {
  const { status, headers, whole } = answer;
  if (whole !== undefined) {
    const kept = { status, headers: relayedHeaders(headers, { free: false, status }), body: whole };
    return () => ({ answer: kept, tooLarge: false });
  }
  return captureStream(answer);
}

function captureStream({ status, headers, body }: BackendAnswer): () => CapturedAnswer {
  let chunks: Uint8Array[] | undefined = [];
  let bytes = 0;
  let ended = false;
  body.on('data', (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    // What is too large is not held back in memory either.
    if (bytes > MAX_KEPT_BYTES) chunks = undefined;
    else chunks?.push(chunk);
  });
  body.once('end', () => {
    ended = true;
  });
  return () => ({
    answer:
      ended && chunks !== undefined
        ? { status, headers: relayedHeaders(headers, { free: false, status }), body: Buffer.concat(chunks) }
        : undefined,
    tooLarge: chunks === undefined,
  });
}

/** Reads on to the end of an answer, or to its failure, for the copy of it. */
export async function readOn(body: BackendAnswer['body']): Promise<void> {
  if (body.closed) return;
  body.once('error', () => undefined);
  body.resume();
  await new Promise<void>((resolve) => body.once('close', resolve));
}

/** A kept answer in the shape of a fresh one; a short one is there as a whole. */
export function asAnswer({ status, headers, body: bytes }: KeptAnswer): BackendAnswer {
  let body: Readable | undefined;
  return {
    status,
    headers,
    ...(bytes.byteLength > ANSWER_BUFFER_BYTES ? {} : { whole: bytes }),
    get body() {
      body ??= Readable.from(bytes.byteLength === 0 ? [] : [bytes], { objectMode: false });
      return body;
    },
  };
}
