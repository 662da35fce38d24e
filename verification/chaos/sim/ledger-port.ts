/**
 * The ledger as one simulated process sees it. Calls `onBug` when the state machine refuses a
 * command, because the code under test turns an error after a settlement into "uncertain"; calls
 * `onHold` with the attempts of this process that got a record.
 */

import { unpaidAmong } from '../../../spec/store/table-store.ts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import type { Process } from './process.ts';
import type { SimStore } from './store.ts';

export function ledgerPort(
  process: Process,
  store: SimStore,
  skewMs: number,
  onBug: (thrown: unknown) => void,
  onHold: (owner: string) => void,
): PaymentLedger {
  const ask = <T>(label: string, effect: () => T): Promise<T> =>
    process.ask(label, () => {
      try {
        return effect();
      } catch (thrown) {
        if (!(thrown instanceof StoreError)) onBug(thrown);
        throw thrown;
      }
    });
  return {
    reserve: (command) =>
      ask('reserve', () => {
        const reservation = store.reserve(command, skewMs);
        if (reservation.kind === 'granted') onHold(reservation.record.owner);
        return reservation;
      }),
    advance: (command) => ask(`advance ${command.to}`, () => store.advance(command)),
    note: (command) => ask('note', () => store.note(command)),
    renew: (claim, leaseMs) => ask('renew', () => store.renew(claim, leaseMs)),
    discard: (...discard) => ask('discard', () => store.discard(...discard)),
    read: (payId) => ask('read', () => store.records.get(payId)),
    kept: (payId) => ask('kept', () => store.kept(payId)),
    unpaid: (limit) => ask('unpaid', () => unpaidAmong(store.records.values(), limit)),
    due: (limit) => ask('due', () => store.due(limit)),
  };
}
