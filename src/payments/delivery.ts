import type { Journal } from '../events/journal.ts';
import { REQUEST_MAY_BE_WRITTEN, REQUEST_NOT_WRITTEN } from './closing.ts';
import { holder } from './holder.ts';
import type { PaymentLedger, PaymentRecord } from './ledger/ledger.ts';
import { persist } from './persist.ts';
import { type Delivery, receiptOf } from './receipt.ts';

/** Writes down how the delivery of a paid call ended: state, receipt and events in one write. */
export interface DeliveryDesk {
  /** The answer was sent completely. */
  delivered(record: PaymentRecord, facts: DeliveryFacts): Promise<void>;
  /** Money moved and the buyer has nothing yet. Resolves when the proof may be brought again. */
  undelivered(record: PaymentRecord, facts: DeliveryFacts & Undelivered): Promise<void>;
}

export interface Undelivered {
  /** The error code the buyer was given, or `CLIENT_GONE`. */
  readonly failure: string;
  /** False only when it is certain that no byte of the request reached the merchant. */
  readonly requestWritten: boolean;
}

export interface DeliveryFacts {
  /** The request that is being answered; differs from the record's when a later one collects. */
  readonly requestId: string;
  /** 0 when no answer came. */
  readonly backendStatus: number;
  readonly durationMs: number;
  /** What of it still waits goes with the write. */
  readonly journal: Journal;
}

/** `warn` is told of a delivery that could not be written: its lease will end, and the record stays collectable. */
export function createDeliveryDesk(
  ledger: PaymentLedger,
  warn: (facts: { readonly payId: string; readonly err: unknown }) => void,
  now: () => Date = () => new Date(),
): DeliveryDesk {
  const close = async (
    record: PaymentRecord,
    to: 'delivered' | 'undelivered',
    facts: DeliveryFacts,
    delivery: Delivery,
    reason?: string,
  ): Promise<void> => {
    if (record.transaction === undefined) throw new Error('a settled record without a transaction');
    const at = now();
    const receipt = receiptOf(record, {
      transaction: record.transaction,
      settledAt: new Date(record.settledAt ?? at),
      at,
      durationMs: facts.durationMs,
      delivery,
      ...(facts.requestId === record.requestId ? {} : { resumedBy: facts.requestId }),
    });
    const command = {
      ...holder(record),
      to,
      leaseMs: 0,
      facts: reason === undefined ? {} : { reason },
      receipt,
      events: facts.journal.take(),
    };
    const written = await persist(() => ledger.advance(command));
    if (written.kind === 'done') return;
    facts.journal.putBack(command.events);
    facts.journal.flush();
    warn({ payId: record.payId, err: written.kind === 'unwritten' ? written.cause : new Error(written.kind) });
  };
  return {
    delivered: (record, facts) =>
      close(record, 'delivered', facts, {
        backendStatus: facts.backendStatus,
        deliveredAt: now(),
        failure: undefined,
      }),
    undelivered: (record, facts) =>
      close(
        record,
        'undelivered',
        facts,
        { backendStatus: facts.backendStatus, deliveredAt: undefined, failure: facts.failure },
        facts.requestWritten ? REQUEST_MAY_BE_WRITTEN : REQUEST_NOT_WRITTEN,
      ),
  };
}
