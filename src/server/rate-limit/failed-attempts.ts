/** Bounds the guessing of bearer tokens, for operators and checkout clients. */

import { RecentMap } from '../../time/recent-map.ts';
import type { ClientOf } from './client-address.ts';
import { MAX_CLIENTS } from './token-buckets.ts';

/** Wrong tokens that a client may send in any minute: enough for mistakes, too few for guessing. */
export const MAX_FAILED_ATTEMPTS = 10;
const WINDOW_MS = 60_000;

/** Counts the wrong tokens of each client, in the memory of this process. */
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
