import { isObject, type Json } from '../../../json/types.ts';
import type { KeysById } from './issuer.ts';
import { readJwk } from './static-keys.ts';
import type { VerificationKey } from './trust.ts';

/** How long keys count as new, milliseconds. */
const FRESH_MS = 600_000;
/**
 * Age from which they are fetched again in the background, so that no call meets old ones,
 * milliseconds.
 */
const REFRESH_AFTER_MS = 480_000;
/** How long old keys are used when new ones cannot be had, milliseconds. */
const STALE_MS = 86_400_000;
/**
 * Between two fetches for an id that is unknown, and between two looks at the age, milliseconds.
 */
const REFETCH_MS = 30_000;
/**
 * Between two fetches while there is no key at all: those who wait are told soon, and the issuer is
 * not stormed, milliseconds.
 */
const RETRY_MS = 5_000;

/** There is no key of this issuer, and none can be had now. */
export class KeysUnavailable extends Error {
  constructor(cause: unknown) {
    super('the keys of the issuer cannot be had', { cause });
    this.name = 'KeysUnavailable';
  }
}

/** Keys that are fetched from the issuer (ap2 7.5). */
export interface RemoteKeys {
  /**
   * At once for an id that is known. An unknown one is looked up at the issuer, by all who want one
   * together. @throws KeysUnavailable
   */
  find(kid: string): VerificationKey | undefined | Promise<VerificationKey | undefined>;
  /** Waits for a fetch that is under way when there are no keys yet. */
  check(): Promise<{ readonly found: 'fresh' | 'stale' | 'none'; readonly cause: unknown }>;
  close(): void;
}

/**
 * `load` fetches and reads; it is called at once. `now`: milliseconds of a clock that never goes
 * back.
 */
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
  /** Single flight; never rejects. */
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

  const findAfresh = async (kid: string): Promise<VerificationKey | undefined> => {
    await refresh();
    const keys = usable();
    if (keys === undefined) throw new KeysUnavailable(fault);
    return keys.get(kid);
  };
  return {
    find(kid) {
      const keys = usable();
      if (keys === undefined) {
        if (may(RETRY_MS)) return findAfresh(kid);
        throw new KeysUnavailable(fault);
      }
      const key = keys.get(kid);
      if (key === undefined) return may(REFETCH_MS) ? findAfresh(kid) : undefined;
      // The timer may have been late, as in a process that was stopped for a while.
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

/** Most keys of one issuer that are looked at. */
const MAX_KEYS = 100;

/** A document of keys that gives none. Says what is wrong of it and quotes nothing. */
export class UselessKeys extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UselessKeys';
  }
}

/**
 * The usable keys of a JWK Set (RFC 7517, section 5). Keys for other purposes may stand in it and
 * are passed over. A key that came with its private half belongs to everybody, and of two keys with
 * one `kid` nobody knows which is meant: those are not taken either.
 * @throws UselessKeys when no key remains
 */
export function keysOfJwks(document: Json): KeysById {
  const listed = isObject(document) ? document['keys'] : undefined;
  if (!Array.isArray(listed)) throw new UselessKeys('the answer is no JWK Set');
  return oneForEachId(listed.filter(isObject).map((jwk) => readJwk(jwk)));
}

/** Keys by id, without the ids that come twice. @throws UselessKeys for none, and for too many */
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
