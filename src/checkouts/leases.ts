/**
 * How long a keyed call may take, is remembered, and makes others wait; pure functions of settings.
 */

/** How long a command of the store may take, milliseconds; both adapters of stores keep to it. */
export const STORE_COMMAND_TIMEOUT_MS = 500;
/**
 * For the process itself, milliseconds: from the store's answer to the backend's socket, and back.
 */
const SLACK_MS = 2_000;
/**
 * How long an unknown end is remembered at least, milliseconds: agents may come back until then.
 */
const SHORTEST_UNKNOWN_KEEP_MS = 7 * 24 * 60 * 60 * 1_000;
/** How long after the longest timeout the backend may still work on a call, milliseconds. */
const SETTLE_MARGIN_MS = 30_000;
const MS_PER_S = 1_000;

/**
 * The lease of an attempt, milliseconds: the backend's time and the commands around it (acp 12.4).
 */
export function leaseFor(timeoutMs: number): number {
  return timeoutMs + 2 * STORE_COMMAND_TIMEOUT_MS + SLACK_MS;
}

/** How long an unknown end is remembered, milliseconds: never shorter than an answer would be. */
export function unknownKeepMs(retentionMs: number): number {
  return Math.max(retentionMs, SHORTEST_UNKNOWN_KEEP_MS);
}

/**
 * How long after the begin of an attempt with an unknown end its effect may still come,
 * milliseconds: for a backend that looks at no key the operation does not run again before (acp
 * 12.5).
 */
export function settleWindowMs(longestTimeoutMs: number): number {
  return longestTimeoutMs + SETTLE_MARGIN_MS;
}

/**
 * When to ask again about an attempt that runs, whole seconds, at least 1: as long as it has run
 * already (`ageMs`), like a back-off, but no longer than it may still take (`leftMs`).
 */
export function retryAfterS(ageMs: number, leftMs: number): number {
  return Math.max(1, Math.min(Math.ceil(ageMs / MS_PER_S), Math.ceil(leftMs / MS_PER_S)));
}
