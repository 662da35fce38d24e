import type { EventType } from '../../src/events/event.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { useOf } from '../mandates/claims.ts';

/** The states of a payment in their order. */
export const STATES = ['reserved', 'settling', 'settled', 'delivered'] as const;
export type Stage = (typeof STATES)[number];

/** Everything that must be stored in a state, and nothing more. */
interface Trail {
  /** Oldest first; the last one came with the change to this state. */
  readonly events: readonly EventType[];
  readonly receipt: Partial<Receipt> | undefined;
  readonly kept: boolean;
}

export const CARRIED: Readonly<Record<Stage, Trail>> = {
  reserved: { events: [], receipt: undefined, kept: false },
  settling: { events: ['payment.verified'], receipt: undefined, kept: false },
  settled: { events: ['payment.verified', 'payment.settled'], receipt: { delivered: false }, kept: false },
  delivered: {
    events: ['payment.verified', 'payment.settled', 'resource.delivered'],
    receipt: { delivered: true, backendStatus: 200 },
    kept: true,
  },
};

/** The open mandate of all payments, one unit each. */
export const SHARED_MANDATE = [useOf('shared', { units: '1', budgetUnits: '9007199254740991' })];
