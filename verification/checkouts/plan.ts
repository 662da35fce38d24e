/**
 * How the backend behaves, and so what the machine may rely on (acp 12.5). `reports`: ignores keys,
 * acts within the timeout or shows that it works, and can always be read. `settles`: ignores keys,
 * may act long after the timeout without a sign of it, and often cannot be read: read-back-only.
 * `deduplicates`: uses keys, may act at any time, and often cannot be read.
 */
export type Manner = 'reports' | 'settles' | 'deduplicates';

/** Of every operation, milliseconds. */
export const TIMEOUT_MS = 25_000;
