import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Advance, PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { event, holder, move, receipt, TRANSACTION, terms } from '../payments/ledger/samples.ts';
import { type LossyStore, lossyStore } from './lossy-store.ts';
import { done, LEASE_MS } from './opened.ts';
import { everything, redisBed } from './redis-bed.ts';

const ANSWER = { status: 200, headers: { 'content-type': 'text/plain' }, body: Buffer.from('paid for') };

const bed = redisBed();
let over: LossyStore;

/** A new record in this state. */
async function inState(to: 'reserved' | 'settling' | 'settled'): Promise<PaymentRecord> {
  let record = await bed.reserved();
  const path = to === 'settled' ? (['settling', 'settled'] as const) : to === 'settling' ? (['settling'] as const) : [];
  for (const state of path) record = done(await bed.store.ledger.advance(move(record, state)));
  return record;
}

type Sent = (record: PaymentRecord) => () => Promise<unknown>;

const advance =
  (commandFor: (record: PaymentRecord) => Advance): Sent =>
  (record) => {
    const command = commandFor(record);
    return () => over.store.ledger.advance(command);
  };

/** Each makes one command with its tokens, which is then sent twice. */
const COMMANDS: readonly (readonly [name: string, from: 'reserved' | 'settling' | 'settled', sent: Sent])[] = [
  [
    'a change of state with its events',
    'reserved',
    advance((record) => move(record, 'settling', { events: [event('payment.verified', record.requestId)] })),
  ],
  [
    'a settlement with receipt, event and a kept answer',
    'settling',
    advance((record) =>
      move(record, 'settled', {
        facts: { transaction: TRANSACTION, evidence: 'logs' },
        receipt: receipt(record.receiptId, record.requestId),
        events: [event('payment.settled', record.requestId)],
        keeping: { answer: ANSWER, forMs: LEASE_MS },
      }),
    ),
  ],
  [
    'a delivery that failed',
    'settled',
    advance((record) => move(record, 'undelivered', { facts: { reason: 'timeout' } })),
  ],
  [
    'a note with facts, events and a kept answer',
    'settling',
    (record) => {
      const command = {
        ...holder(record),
        leaseMs: LEASE_MS,
        againMs: 500,
        facts: { transaction: TRANSACTION, rawTransaction: '0x02f8' },
        events: [event('backend.called', record.requestId)],
        keeping: { answer: ANSWER, forMs: LEASE_MS },
      };
      return () => over.store.ledger.note(command);
    },
  ],
  [
    'a discarded reservation with its event',
    'reserved',
    (record) => {
      const held = holder(record);
      return () => over.store.ledger.discard(held, [event('payment.rejected', record.requestId)]);
    },
  ],
  [
    'a numbered batch of events',
    'reserved',
    (record) => {
      const batch = { queue: randomUUID(), sequence: 1 };
      return () => over.store.feed.append([event('resource.requested', record.requestId)], batch);
    },
  ],
  [
    'a written receipt',
    'reserved',
    (record) => () => over.store.receipts.write([receipt(record.receiptId, record.requestId)]),
  ],
];

describe('a command whose answer is lost, sent again', () => {
  over = lossyStore(bed);

  for (const [name, from, sent] of COMMANDS)
    it(`changes the store once: ${name}`, async () => {
      const record = await inState(from);
      const before = await everything(bed);
      const send = sent(record);
      await over.lost(send);
      const once = await everything(bed);
      const answer = await send();
      assert.deepEqual(await everything(bed), once);
      if (answer !== undefined && answer !== true)
        assert.match((answer as { readonly kind: string }).kind, /^(done|gone)$/);
      assert.notDeepEqual(once, before, 'the first one has to have arrived');
    });

  it('grants a first reservation to the same attempt', async () => {
    const wanted = { terms: terms(), owner: randomUUID(), leaseMs: LEASE_MS };
    await over.lost(() => over.store.ledger.reserve(wanted));
    const again = await over.store.ledger.reserve(wanted);
    assert.partialDeepStrictEqual(again, {
      kind: 'granted',
      record: { owner: wanted.owner, fence: 1, state: 'reserved' },
    });
  });

  it('takes a lease over once', async () => {
    const record = await inState('settling');
    await bed.store.ledger.note({ ...holder(record), leaseMs: 0 });
    const wanted = { terms: record, owner: randomUUID(), leaseMs: LEASE_MS };
    await over.lost(() => over.store.ledger.reserve(wanted));
    assert.partialDeepStrictEqual(await over.store.ledger.reserve(wanted), { kind: 'granted', record: { fence: 2 } });
  });

  it('renews a lease and nothing else', async () => {
    const record = await inState('settling');
    await over.lost(() => over.store.ledger.renew(record, LEASE_MS));
    assert.equal(await over.store.ledger.renew(record, LEASE_MS), true);
    const now = (await over.store.ledger.read(record.payId)) ?? assert.fail('gone');
    const { leaseUntil, dueAt } = now;
    assert.deepEqual({ ...record, leaseUntil, dueAt }, now);
  });
});
