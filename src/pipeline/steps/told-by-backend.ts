/** What a merchant's failed answer says in JSON, for the agent that called (contract 1.1). */

import type { Readable } from 'node:stream';
import type { BackendAnswer } from '../../backend/exchange.ts';
import { relayedHeaders } from '../../backend/header-policy.ts';
import type { ToldByBackend } from '../../errors.ts';
import type { Json } from '../../json/types.ts';
import { isEncoded, isJsonType } from '../../server/http/headers.ts';

/** Largest body, and largest headers beside it, bytes. */
const MOST_BYTES = 4_096;
/** Only the gateway asks for money, so the terms of a backend are not shown. */
const PAYMENT_REQUIRED_STATUS = 402;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a failed answer and lets go of its connection. Undefined: it has no JSON body within the
 * bound, or broke off. Never rejects.
 */
export async function toldByBackend(answer: BackendAnswer): Promise<ToldByBackend | undefined> {
  const { status, whole } = answer;
  const {
    'content-type': type = '',
    'content-encoding': encoding,
    'content-length': length = '0',
    'cache-control': _caching,
    ...others
  } = relayedHeaders(answer.headers, { free: false, status });
  const isTold = status >= 400 && status !== PAYMENT_REQUIRED_STATUS && isJsonType(type) && !isEncoded(encoding);
  if (!isTold || Number(length) > MOST_BYTES) {
    answer.body.destroy();
    return undefined;
  }
  try {
    const bytes = whole ?? (await readBounded(answer.body));
    if (bytes === undefined || bytes.byteLength > MOST_BYTES) return undefined;
    const body = JSON.parse(UTF_8.decode(bytes)) as Json;
    const size = JSON.stringify(others).length;
    return size > '{}'.length && size <= MOST_BYTES ? { status, headers: others, body } : { status, body };
  } catch {
    return undefined;
  }
}

/** Undefined: there is more. */
async function readBounded(body: Readable): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Uint8Array).byteLength;
    if (size > MOST_BYTES) return undefined;
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks);
}
