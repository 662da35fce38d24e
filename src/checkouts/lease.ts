/** After this long without an answer a command of the store has failed, milliseconds; both adapters keep to it. */
export const STORE_COMMAND_TIMEOUT_MS = 500;
/** For the process itself, milliseconds: between the store's answer and the merchant's socket, and back. */
const SLACK_MS = 2_000;
/** How long an attempt whose end is unknown is remembered at least, milliseconds: as long as an agent may come back to it. */
const SHORTEST_UNKNOWN_KEEP_MS = 7 * 24 * 60 * 60 * 1_000;
/** How much longer than the longest operation a merchant may be at work on what was given up, milliseconds. */
const SETTLE_MARGIN_MS = 30_000;

/** How long an attempt has, milliseconds: the merchant's time, and that of the commands around it (acp 12.4). */
export function leaseFor(timeoutMs: number): number {
  return timeoutMs + 2 * STORE_COMMAND_TIMEOUT_MS + SLACK_MS;
}

/** How long an attempt whose end is unknown is remembered, milliseconds: never shorter than an answer would be. */
export function unknownKeepMs(retentionMs: number): number {
  return Math.max(retentionMs, SHORTEST_UNKNOWN_KEEP_MS);
}

/**
 * How long after the beginning of an attempt with an unknown end its effect may still come, milliseconds: for a merchant that looks at no
 * key the operation does not run again before (acp 12.5).
 */
export function settleWindowMs(longestTimeoutMs: number): number {
  return longestTimeoutMs + SETTLE_MARGIN_MS;
}
