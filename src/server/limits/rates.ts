/** How often a client may call, and how often it may send a wrong token. */

import { RecentMap } from '../../time/recent-map.ts';
import type { ClientOf } from './client-address.ts';

/** Most clients that are remembered at a time; about 1 MB. */
export const MAX_CLIENTS = 10_000;

/** How many calls a client may make. */
export interface Rate {
  /** Tokens that come back, per second. */
  readonly perSecond: number;
  /** Tokens of a client that made no calls for a while. */
  readonly burst: number;
}

/** The tokens that a client has left. Times in whole seconds, rounded up. */
export interface Allowance {
  readonly granted: boolean;
  /** Whole tokens left. */
  readonly left: number;
  /** Until the next token is there, at least 1; meaningful where none was granted. */
  readonly retryAfterS: number;
  /** Until all are back. */
  readonly fullAfterS: number;
}

/** One bucket of tokens for each client. */
export interface TokenBuckets {
  readonly rate: Rate;
  /** Takes a token, when there is one. */
  take(client: string): Allowance;
  /** Gives back the token of a call that does not count after all. */
  giveBack(client: string): void;
}

interface Bucket {
  tokens: number;
  /** When `tokens` was right, milliseconds. */
  at: number;
}

/**
 * `rate`: a function is asked for each call; used tokens stay counted when the rate changes. `now`:
 * milliseconds of a monotonic clock.
 */
export function createTokenBuckets(
  rate: Rate | (() => Rate),
  { maxClients = MAX_CLIENTS, now = () => performance.now() }: { maxClients?: number; now?: () => number } = {},
): TokenBuckets {
  const rateNow = typeof rate === 'function' ? rate : () => rate;
  const buckets = new RecentMap<Bucket>(maxClients);
  return {
    get rate() {
      return rateNow();
    },
    take(client) {
      const { perSecond, burst } = rateNow();
      const at = now();
      let bucket = buckets.use(client);
      if (bucket === undefined) {
        bucket = { tokens: burst, at };
        buckets.add(client, bucket);
      }
      bucket.tokens = Math.min(burst, bucket.tokens + ((at - bucket.at) * perSecond) / 1_000);
      bucket.at = at;
      const granted = bucket.tokens >= 1;
      if (granted) bucket.tokens -= 1;
      return {
        granted,
        left: Math.floor(bucket.tokens),
        retryAfterS: Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond)),
        fullAfterS: Math.ceil((burst - bucket.tokens) / perSecond),
      };
    },
    giveBack(client) {
      const bucket = buckets.use(client);
      if (bucket !== undefined) bucket.tokens = Math.min(rateNow().burst, bucket.tokens + 1);
    },
  };
}

/** Wrong tokens that a client may send in any minute: enough for mistakes, too few for guessing. */
export const MAX_FAILED_ATTEMPTS = 10;
const WINDOW_MS = 60_000;

/** Counts the wrong tokens of each client. */
interface FailedAttempts {
  /** Notes one. After too many the result is how many seconds the client must wait. */
  note(client: string): number | undefined;
}

/** How wrong tokens of one kind are counted. */
export interface Guesses {
  /** Default: the address of the connection. */
  readonly clientOf?: ClientOf;
  readonly wrongTries?: FailedAttempts;
  /** Called for each wrong token beyond the limit. */
  readonly onLimited?: () => void;
}

/** `now`: milliseconds of a monotonic clock. */
export function countFailedAttempts({
  maxClients = MAX_CLIENTS,
  now = () => performance.now(),
}: {
  maxClients?: number;
  now?: () => number;
} = {}): FailedAttempts {
  /** The times of counted attempts, oldest first. Refused ones do not count, so waiting helps. */
  const counted = new RecentMap<number[]>(maxClients);
  return {
    note(client) {
      const at = now();
      const tries = counted.use(client);
      if (tries === undefined) {
        counted.add(client, [at]);
        return undefined;
      }
      const oldest = tries[tries.length - MAX_FAILED_ATTEMPTS];
      if (oldest !== undefined && at - oldest < WINDOW_MS)
        return Math.max(1, Math.ceil((oldest + WINDOW_MS - at) / 1_000));
      if (tries.push(at) > MAX_FAILED_ATTEMPTS) tries.shift();
      return undefined;
    },
  };
}
