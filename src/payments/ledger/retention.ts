import type { PaymentRecord, PaymentState } from './ledger.ts';

const HOUR_MS = 60 * 60 * 1_000;
/** How long a settled call can still be collected with the same proof, milliseconds (contract 4.3). */
export const RETRY_WINDOW_MS = 24 * HOUR_MS;
/** The retry window and one hour on top (contract 4.3), milliseconds. */
export const RECORD_RETENTION_MS = RETRY_WINDOW_MS + HOUR_MS;

/**
 * After this long past its due time an entry of the work list stands for a record that is certainly forgotten, milliseconds: a
 * proof is valid for at most 4,200 s ahead (contract 4.2) and a lease lasts at most 600 s, far less than the second day.
 */
export const WORK_RETENTION_MS = 48 * 60 * 60 * 1_000;

/** What waits for an operator's decision is not forgotten before it, milliseconds: ten years stand for ever. */
const UNRESOLVED_RETENTION_MS = 10 * 365 * 24 * HOUR_MS;

/** How long a record in this state is kept after its window or its last change, whichever is later, milliseconds. */
export function retentionOf(state: PaymentState): number {
  return state === 'unresolved' ? UNRESOLVED_RETENTION_MS : RECORD_RETENTION_MS;
}

/** When a record may be forgotten, milliseconds of the store's clock: renewed with every change. */
export function expiresAt(record: PaymentRecord): number {
  return Math.max(record.validBefore * 1_000, record.changedAt) + retentionOf(record.state);
}
