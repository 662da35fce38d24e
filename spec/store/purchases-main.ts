/**
 * Makes payments in an embedded store until it is killed. Arguments: path of the database, name of
 * the run, callers at the same time. Prints one line for every acknowledged write, before the next
 * one of that caller: pay id and state.
 */
import { writeSync } from 'node:fs';
import type { PaymentLedger, PaymentState } from '../../src/payments/ledger/ledger.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { claimOf, mandateText } from '../mandates/claims.ts';
import { event, keptAnswer, move, receipt, recordIn, terms } from '../payments/ledger/samples.ts';
import { done } from './opened.ts';
import { CARRIED, SHARED_MANDATE, STATES } from './purchases.ts';

const STDOUT = 1;
const [path = '', prefix = '', callers = '1'] = process.argv.slice(2);
const store = openSqliteStore({ path, limits: { eventsMaxLength: 1_000_000, receiptsMaxLength: 1_000_000 } });

for (let caller = 0; caller < Number(callers); caller += 1) void payForEver(caller);

async function payForEver(caller: number): Promise<never> {
  // Out of step with the others, so that a kill finds payments in every state.
  for (let turn = 0; turn < caller % STATES.length; turn += 1) await store.check();
  for (let payment = 0; ; payment += 1) await pay(store.ledger, `${prefix}-${caller}-${payment}`);
}

async function pay(ledger: PaymentLedger, name: string): Promise<void> {
  const offered = terms(name, { mandate: mandateText(claimOf(name, { open: SHARED_MANDATE })) });
  const { payId, requestId, receiptId } = offered;
  let record = recordIn(await ledger.reserve({ terms: offered, owner: name, leaseMs: 60_000 }));
  acknowledged(payId, record.state);
  for (const to of ['settling', 'settled', 'delivered'] as const) {
    const { events, receipt: changes, kept } = CARRIED[to];
    const command = move(record, to, {
      events: events.slice(-1).map((type) => event(type, requestId)),
      ...(changes === undefined ? {} : { receipt: receipt(receiptId, requestId, changes) }),
      ...(kept ? { keeping: { answer: keptAnswer(name), forMs: 600_000 } } : {}),
    });
    record = done(await ledger.advance(command));
    acknowledged(payId, to);
  }
}

/** Synchronous: the line is in the pipe before this process can die. */
function acknowledged(payId: string, state: PaymentState): void {
  writeSync(STDOUT, `${payId} ${state}\n`);
}
