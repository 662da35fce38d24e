/**
 * Fetched keys of an issuer, as fresh as can be had (ap2 7.5): over https, bounded in size and
 * time.
 */

import type { LookupFunction } from 'node:net';
import { Agent } from 'undici';
import { allowedAddresses } from '../../backend/forbidden-addresses.ts';
import { type Json, JsonError, parseStrictJson } from '../../json/json.ts';
import { type KeysById, UselessKeys, type VerificationKey } from './keys.ts';

/** Age up to which keys count as fresh, milliseconds. */
const FRESH_MS = 600_000;
/** Age from which keys are fetched in the background, so that no call waits, milliseconds. */
const REFRESH_AFTER_MS = 480_000;
/** Age up to which stale keys are used when none can be fetched, milliseconds. */
const STALE_MS = 86_400_000;
/** Between two fetches for an unknown id, and between two checks of the age, milliseconds. */
const REFETCH_MS = 30_000;
/** Between two fetches while there is no key at all, milliseconds. */
const RETRY_MS = 5_000;

/** There is no key of this issuer, and none can be fetched now. */
export class KeysUnavailable extends Error {
  constructor(cause: unknown) {
    super('the keys of the issuer cannot be had', { cause });
    this.name = 'KeysUnavailable';
  }
}

/** Keys that are fetched from the issuer (ap2 7.5). */
export interface RemoteKeys {
  /** Finds a known id at once; may fetch for an unknown one. @throws KeysUnavailable */
  find(kid: string): VerificationKey | undefined | Promise<VerificationKey | undefined>;
  /** Waits for a running fetch when there are no keys yet. */
  check(): Promise<{ readonly found: 'fresh' | 'stale' | 'none'; readonly cause: unknown }>;
  close(): void;
}

/** `load` fetches and reads; it is called at once. `now`: milliseconds of a monotonic clock. */
export function createRemoteKeys(load: () => Promise<KeysById>, now: () => number): RemoteKeys {
  let held: { readonly keys: KeysById; readonly at: number } | undefined;
  let triedAt = Number.NEGATIVE_INFINITY;
  let fault: unknown;
  let loading: Promise<void> | undefined;

  const usable = (): KeysById | undefined => (held !== undefined && now() - held.at < STALE_MS ? held.keys : undefined);
  const old = (ms: number): boolean => held === undefined || now() - held.at >= ms;
  const fetchOnce = async (): Promise<void> => {
    try {
      const keys = await load();
      held = { keys, at: now() };
      fault = undefined;
    } catch (error) {
      fault = error;
    }
  };
  /** Calls share one fetch. Never rejects. */
  const refresh = (): Promise<void> => {
    if (loading !== undefined) return loading;
    triedAt = now();
    loading = fetchOnce().finally(() => {
      loading = undefined;
    });
    return loading;
  };
  const may = (ms: number): boolean => loading !== undefined || now() - triedAt >= ms;

  void refresh();
  const timer = setInterval(() => {
    if (old(REFRESH_AFTER_MS)) void refresh();
  }, REFETCH_MS);
  timer.unref();

  const fetchAndFind = async (kid: string): Promise<VerificationKey | undefined> => {
    await refresh();
    const keys = usable();
    if (keys === undefined) throw new KeysUnavailable(fault);
    return keys.get(kid);
  };
  return {
    find(kid) {
      const keys = usable();
      if (keys === undefined) {
        if (may(RETRY_MS)) return fetchAndFind(kid);
        throw new KeysUnavailable(fault);
      }
      const key = keys.get(kid);
      if (key === undefined) return may(REFETCH_MS) ? fetchAndFind(kid) : undefined;
      // The timer is late in a process that stood still.
      if (old(FRESH_MS) && may(REFETCH_MS)) void refresh();
      return key;
    },
    async check() {
      if (usable() === undefined) await loading;
      const found = usable() === undefined ? 'none' : old(FRESH_MS) ? 'stale' : 'fresh';
      return { found, cause: fault };
    },
    close: () => clearInterval(timer),
  };
}

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

/** Each option that is left out is as in production. */
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
