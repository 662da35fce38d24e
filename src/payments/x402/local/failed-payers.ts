/** How long nothing is sent for a payer after a transfer of his failed in a block, milliseconds. */
export const FAILED_PAYER_PAUSE_MS = 30_000;
/** Most payers remembered; who failed longest ago is forgotten first. */
export const FAILED_PAYERS = 1_000;

/**
 * Payers whose last transfer failed in a block although it had passed its simulation. That costs the relayer gas, and it is the payer's
 * doing: his balance, his cancellation or the code of his wallet changed in between. So he waits before he can do it again.
 */
interface FailedPayers {
  add(payer: string): void;
  has(payer: string): boolean;
}

/** @param now Milliseconds of a monotonic clock. */
export function createFailedPayers(now: () => number = () => performance.now()): FailedPayers {
  const failedAt = new Map<string, number>();
  return {
    add(payer) {
      const key = payer.toLowerCase();
      // Deleted first, so that the map stays in the order of time.
      failedAt.delete(key);
      failedAt.set(key, now());
      const [oldest] = failedAt.keys();
      if (failedAt.size > FAILED_PAYERS && oldest !== undefined) failedAt.delete(oldest);
    },
    has(payer) {
      const at = failedAt.get(payer.toLowerCase());
      return at !== undefined && now() - at < FAILED_PAYER_PAUSE_MS;
    },
  };
}
