/**
 * Sells into an embedded store until it is killed. Arguments: path of the database, name of the
 * life, callers at the same time. Prints one line for every write that was acknowledged, before the
 * next one of that caller: pay id and state.
 */
import { writeSync } from 'node:fs';
import type { PaymentLedger, PaymentState } from '../../src/payments/ledger/ledger.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { claimOf, mandateText } from '../mandates/register/register-map.ts';
import { event, keptAnswer, move, receipt, recordIn, terms } from '../payments/ledger/samples.ts';
import { CARRIED, EVERYBODYS, WAY } from './sales.ts';

const STDOUT = 1;
const [path = '', life = '', callers = '1'] = process.argv.slice(2);
const store = openSqliteStore({ path, limits: { eventsMaxLength: 1_000_000, receiptsMaxLength: 1_000_000 } });

for (let caller = 0; caller < Number(callers); caller += 1) void sellForEver(caller);

async function sellForEver(caller: number): Promise<never> {
  // Out of step with the others, so that a kill finds sales in every state.
  for (let turn = 0; turn < caller % WAY.length; turn += 1) await store.check();
  for (let sale = 0; ; sale += 1) await sell(store.ledger, `${life}-${caller}-${sale}`);
}

async function sell(ledger: PaymentLedger, name: string): Promise<void> {
  const offered = terms(name, { mandate: mandateText(claimOf(name, { open: EVERYBODYS })) });
  const { payId, requestId, receiptId } = offered;
  let record = recordIn(await ledger.reserve({ terms: offered, owner: name, leaseMs: 60_000 }));
  acknowledged(payId, record.state);
  for (const to of ['settling', 'settled', 'delivered'] as const) {
    const { events, receipt: told, kept } = CARRIED[to];
    const answer = await ledger.advance(
      move(record, to, {
        events: events.slice(-1).map((type) => event(type, requestId)),
        ...(told === undefined ? {} : { receipt: receipt(receiptId, requestId, told) }),
        ...(kept ? { keeping: { answer: keptAnswer(name), forMs: 600_000 } } : {}),
      }),
    );
    if (answer.kind !== 'done') throw new Error(`${to}: ${answer.kind}`);
    ({ record } = answer);
    acknowledged(payId, to);
  }
}

/** Synchronous: what was printed is in the pipe, whatever happens to this process. */
function acknowledged(payId: string, state: PaymentState): void {
  writeSync(STDOUT, `${payId} ${state}\n`);
}
