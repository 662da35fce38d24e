/** Work that was not paid for, as operators read it: answers of the backend that await nothing. */

import type { PaymentRecord } from './ledger.ts';

/** Refused payments on the list of unpaid work, at most. */
export const MOST_UNPAID = 1_000;

/** One call with `settle: after` that was not paid. `amount`: display units. */
export interface UnpaidRow
  extends Pick<
    PaymentRecord,
    'requestId' | 'callId' | 'resourceId' | 'channel' | 'amount' | 'currency' | 'network' | 'payer'
  > {
  /** ISO 8601: since when it is certain; of failed work, when its call began. */
  readonly at: string;
  /** HTTP status of the answer; 0: none came. */
  readonly backendStatus: number;
  /** Why the payment came to nothing, as its 402 states it; else why there was nothing to pay. */
  readonly reason: string;
  readonly replayKey: string;
}

/** @param record one of `PaymentLedger.unpaid` */
export function unpaidWork(record: PaymentRecord): UnpaidRow {
  const { requestId, callId, resourceId, channel, amount, currency, network, payer } = record;
  return {
    at: new Date(record.changedAt).toISOString(),
    ...{ requestId, callId, resourceId, channel, amount, currency, network, payer },
    replayKey: record.payId,
    backendStatus: record.answered ?? 0,
    reason: record.reason ?? '',
  };
}

/** Work whose reservation is given back, because there was no answer to sell. */
export function failedWork(record: PaymentRecord, status: number, reason: string): UnpaidRow {
  return unpaidWork({ ...record, answered: status, reason });
}
