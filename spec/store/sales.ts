import type { EventType } from '../../src/events/event.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { useOf } from '../mandates/register/register-map.ts';

/** The states of a sale in their order. */
export const WAY = ['reserved', 'settling', 'settled', 'delivered'] as const;
export type Stage = (typeof WAY)[number];

/**
 * All that must be there in a state, and nothing more: what each change of state carried, added up.
 */
export interface Trail {
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

/** The open mandate that all sales are made under, one unit each. */
export const EVERYBODYS = [useOf('everybodys', { units: '1', budgetUnits: '9007199254740991' })];
