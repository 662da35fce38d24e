/** Fetches documents of keys from issuers over https, bounded in size and time. */

import type { LookupFunction } from 'node:net';
import { Agent } from 'undici';
import { allowedAddresses } from '../../../backend/forbidden-addresses.ts';
import { JsonError, parseStrictJson } from '../../../json/strict.ts';
import type { Json } from '../../../json/types.ts';
import { UselessKeys } from './jwks.ts';

/** Largest document of keys, bytes. */
export const MAX_KEYS_BYTES = 65_536;
/** From the first byte of the connection to the last of the answer, milliseconds. */
const DEADLINE_MS = 4_000;
const CONNECT_TIMEOUT_MS = 2_000;
const MAX_HEADER_BYTES = 16_384;

/** Rejects when no document came, or none of strict JSON; the message is for the log. */
export interface KeyFetcher {
  fetch(url: string): Promise<Json>;
  close(): Promise<void>;
}

/** What is left out is as in production. */
interface KeyFetchOptions {
  readonly deadlineMs?: number;
  /** How names are resolved, `dns.lookup` unless given. */
  readonly resolve?: LookupFunction;
  /** For tests, which have no trusted certificate. No setting sets it. */
  readonly plainOnLoopback?: boolean;
}

/**
 * Redirects are not followed: the operator named the URL. Names of link-local and metadata
 * addresses are not connected to. Connections are not kept: the next fetch is minutes away.
 */
export function createKeyFetcher(options: KeyFetchOptions = {}): KeyFetcher {
  const { deadlineMs = DEADLINE_MS, resolve, plainOnLoopback = false } = options;
  const agent = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup: allowedAddresses(resolve) },
    pipelining: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The one deadline covers both.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    async fetch(url) {
      const { origin, protocol, hostname, pathname, search } = new URL(url);
      const plain = plainOnLoopback && protocol === 'http:' && hostname === '127.0.0.1';
      if (protocol !== 'https:' && !plain) throw new UselessKeys('keys are fetched over https only');
      const answer = await agent.request({
        origin,
        path: `${pathname}${search}`,
        method: 'GET',
        headers: { accept: 'application/json, application/jwk-set+json, application/did+json' },
        signal: AbortSignal.timeout(deadlineMs),
      });
      if (answer.statusCode !== 200) {
        // The rest is not read.
        answer.body.on('error', () => undefined).destroy();
        throw new UselessKeys(`the answer has status ${answer.statusCode}`);
      }
      return parsed(await bounded(answer.body as AsyncIterable<Buffer>));
    },
    close: () => agent.destroy(),
  };
}

async function bounded(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    // Leaving the loop destroys the body, and with it the connection.
    if (length > MAX_KEYS_BYTES) throw new UselessKeys(`the answer is larger than ${MAX_KEYS_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parsed(bytes: Buffer): Json {
  try {
    return parseStrictJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new UselessKeys(`the answer is not strict JSON (${error.reason})`);
  }
}
