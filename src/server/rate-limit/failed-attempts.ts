import { RecentMap } from '../../time/recent-map.ts';
import type { ClientOf } from './client-address.ts';
import { MAX_CLIENTS } from './token-buckets.ts';

/**
 * Wrong tokens that one client may send within any minute: room for mistakes, far too few for a
 * guess.
 */
export const MAX_FAILED_ATTEMPTS = 10;
const WINDOW_MS = 60_000;

/** Counts wrong tries of each client, in the memory of this process. */
interface FailedAttempts {
  /**
   * Notes one; the result is undefined, or how many seconds the client must wait, because there
   * were too many already.
   */
  note(client: string): number | undefined;
}

/** Who guesses tokens, and how often. */
export interface Guesses {
  /** Default: the address of the connection. */
  readonly clientOf?: ClientOf;
  readonly wrongTries?: FailedAttempts;
  /** Told of each guess that was not heard. */
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
  /**
   * When the tries were that were heard, oldest first: what was not heard is no try, so waiting
   * always helps.
   */
  const heard = new RecentMap<number[]>(maxClients);
  return {
    note(client) {
      const at = now();
      const tries = heard.use(client);
      if (tries === undefined) {
        heard.add(client, [at]);
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
