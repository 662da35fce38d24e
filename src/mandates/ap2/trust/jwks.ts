/** Fetched keys of an issuer, as fresh as can be had, and the reading of JWK Sets (ap2 7.5). */

import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import type { KeysById, VerificationKey } from './issuer.ts';
import { readPublicKey } from './keys.ts';

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
/** Most keys of one issuer that are read. */
const MAX_KEYS = 100;

/** There is no key of this issuer, and none can be fetched now. */
export class KeysUnavailable extends Error {
  constructor(cause: unknown) {
    super('the keys of the issuer cannot be had', { cause });
    this.name = 'KeysUnavailable';
  }
}

/** Keys that are fetched from the issuer (ap2 7.5). */
export interface RemoteKeys {
  /** At once for a known id; for an unknown one the keys are fetched. @throws KeysUnavailable */
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

/** A document without usable keys. The message names the mistake and quotes nothing. */
export class UselessKeys extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UselessKeys';
  }
}

/**
 * The usable keys of a JWK Set (RFC 7517, section 5). Left out are keys for other purposes, keys
 * with their private half, which are public knowledge, and keys that share a `kid`.
 * @throws UselessKeys when no key remains
 */
export function keysOfJwks(document: Json): KeysById {
  const listed = isObject(document) ? document['keys'] : undefined;
  if (!Array.isArray(listed)) throw new UselessKeys('the answer is no JWK Set');
  return oneForEachId(listed.filter(isObject).map((jwk) => readJwk(jwk)));
}

/** Keys by id, without ids that occur twice. @throws UselessKeys for none, and for too many */
export function oneForEachId(readings: readonly ReturnType<typeof readJwk>[]): KeysById {
  if (readings.length > MAX_KEYS) throw new UselessKeys(`there are more than ${MAX_KEYS} keys`);
  const keys = new Map<string, VerificationKey>();
  const twice = new Set<string>();
  for (const reading of readings) {
    if (!reading.ok) continue;
    if (keys.has(reading.kid)) twice.add(reading.kid);
    keys.set(reading.kid, reading.key);
  }
  for (const kid of twice) keys.delete(kid);
  if (keys.size === 0) throw new UselessKeys('there is no key that can be used');
  return keys;
}

/** Longest key id, characters: a DID URL fits. */
export const MAX_KID_LENGTH = 512;
const KID = /^[\x21-\x7e]+$/;

type JwkReading =
  | { readonly ok: true; readonly kid: string; readonly key: VerificationKey }
  /** The message never quotes the key. */
  | { readonly ok: false; readonly message: string };

/** Reads a public key (RFC 7517). It must have a `kid`: keys are chosen by it, never tried. */
export function readJwk(jwk: JsonObject): JwkReading {
  const reading = readPublicKey(jwk);
  if (!reading.ok) return { ok: false, message: reading.message };
  const { kid } = jwk;
  if (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH || !KID.test(kid))
    return {
      ok: false,
      message: `must have a kid of 1 to ${MAX_KID_LENGTH} printable ASCII characters: a key is chosen by it`,
    };
  return { ok: true, kid, key: reading.key };
}

/** What is wrong with one key of a list. */
interface KeyFault {
  readonly index: number;
  readonly message: string;
}

/** Reads a list of keys that must all be right and differ in their `kid`. */
export function readStaticKeys(jwks: readonly JsonObject[]): {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly faults: readonly KeyFault[];
} {
  const keys = new Map<string, VerificationKey>();
  const faults: KeyFault[] = [];
  for (const [index, jwk] of jwks.entries()) {
    const reading = readJwk(jwk);
    if (!reading.ok) faults.push({ index, message: reading.message });
    else if (keys.has(reading.kid)) faults.push({ index, message: 'must have a kid that no other key here has' });
    else keys.set(reading.kid, reading.key);
  }
  return { keys, faults };
}
