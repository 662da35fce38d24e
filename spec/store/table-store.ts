import type { EventDraft } from '../../src/events/event.ts';
import type { PaymentLedger, PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { advance, discard, note, type Outcome, release, reserve } from '../../src/payments/ledger/table.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/store.ts';

/** The pure table over maps: what the engines are compared with. Pages know one filter, the request. */
export function tableStore(now: () => number): Store {
  const records = new Map<string, PaymentRecord>();
  const receipts = new Map<string, Receipt>();
  const events: EventDraft[] = [];

  const settle = <Answer>(
    payId: string,
    outcome: Outcome<Answer>,
    more: readonly EventDraft[],
    receipt?: Receipt,
  ): Answer => {
    const { answer, record, changed } = outcome;
    if (!changed) return answer;
    if (record === undefined) records.delete(payId);
    else records.set(payId, record);
    if (receipt !== undefined) receipts.set(receipt.id, receipt);
    events.push(...more);
    return answer;
  };
  const ledger: PaymentLedger = {
    reserve: async (command) => {
      const { payId } = command.terms;
      return settle(payId, reserve(records.get(payId), command, now()), []);
    },
    advance: async (command) =>
      settle(command.payId, advance(records.get(command.payId), command, now()), command.events, command.receipt),
    note: async (held, facts, leaseMs) =>
      settle(held.payId, note(records.get(held.payId), { ...held, facts, leaseMs }, now()), []),
    release: async (held) => settle(held.payId, release(records.get(held.payId), held, now()), []),
    discard: async (held, more) => settle(held.payId, discard(records.get(held.payId), held), more),
    read: async (payId) => records.get(payId),
  };
  return {
    name: 'sqlite',
    ledger,
    feed: {
      async append(more) {
        events.push(...more);
      },
      page: async ({ requestId }) => ({
        events: events
          .map((event, i) => ({ id: `evt_0-${i}`, ...event }))
          .filter((event) => event.requestId === requestId)
          .reverse(),
      }),
    },
    receipts: {
      async write(written) {
        for (const receipt of written) receipts.set(receipt.id, receipt);
      },
      page: async ({ requestId }) => ({
        receipts: [...receipts.values()]
          .filter((receipt) => receipt.requestId === requestId)
          .sort((a, b) => (a.id < b.id ? 1 : -1)),
      }),
    },
    check: async () => ({ status: 'ok' }),
    close: async () => undefined,
  };
}
