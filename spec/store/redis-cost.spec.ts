import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { fencingToken, type PaymentFacts, type PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { event, keptAnswer, PAYMENT, receipt, sha256, TRANSACTION, terms } from '../payments/ledger/samples.ts';
import { done, granted, LEASE_MS } from './opened.ts';
import { redisBed } from './redis-bed.ts';

/** Commands of Redis inside the scripts of one paid call. */
const INNER_COMMANDS = 43;
/** What Redis answers to the scripts of one paid call, bytes. */
const ANSWERED_BYTES = 192;
/** Reserved, settling, settled, the mark that bytes leave, delivered. */
const STATES = 5;
const AT_ONCE = 16;

const bed = redisBed();

interface Cost {
  /** Scripts, each one round trip. */
  readonly scripts: number;
  readonly inner: number;
  readonly answered: number;
  readonly commands: ReadonlySet<string>;
}

/** What the server did meanwhile for others than this test's own connection. */
async function costOf(work: () => Promise<void>): Promise<Cost> {
  await bed.redis.config('RESETSTAT');
  await work();
  const info = await bed.redis.info('all');
  const calls = new Map(
    [...info.matchAll(/^cmdstat_([a-z|]+):calls=(\d+)/gm)].map(([, name = '', count]) => [name, Number(count)]),
  );
  const scripts = calls.get('evalsha') ?? 0;
  for (const own of ['evalsha', 'info', 'config|resetstat']) calls.delete(own);
  const answered = Number(/^total_net_output_bytes:(\d+)/m.exec(info)?.[1]);
  const inner = [...calls.values()].reduce((sum, count) => sum + count, 0);
  return { scripts, inner, answered, commands: new Set(calls.keys()) };
}

async function advance(
  record: PaymentRecord,
  to: 'settling' | 'settled' | 'delivered',
  facts: PaymentFacts = {},
): Promise<PaymentRecord> {
  const written = receipt(record.receiptId, record.requestId, {
    delivered: to === 'delivered',
    payment: { ...PAYMENT, replayKey: record.payId },
    metadata: { callId: `call of ${record.requestId}` },
  });
  const command = {
    ...fencingToken(record),
    to,
    leaseMs: to === 'delivered' ? 0 : LEASE_MS,
    facts,
    events: [event('payment.verified', record.requestId)],
    ...(to === 'settling' ? {} : { receipt: written }),
    ...(to === 'delivered' ? { keeping: { answer: keptAnswer('report'), forMs: 60_000 } } : {}),
  };
  return done(await bed.store.ledger.advance(command));
}

async function markedPurchase(): Promise<PaymentRecord> {
  const shown = terms(randomUUID(), { tokenDigest: sha256('token of the purchase') });
  const token = { kind: 'issued', id: sha256(randomUUID()), forMs: 60_000 } as const;
  const reserve = { terms: shown, owner: randomUUID(), leaseMs: LEASE_MS, proof: shown.payId.slice(0, 22), token };
  const settling = await advance(granted(await bed.store.ledger.reserve(reserve)), 'settling');
  const settled = await advance(settling, 'settled', { evidence: 'claim', transaction: TRANSACTION });
  return done(
    await bed.store.ledger.note({ ...fencingToken(settled), facts: { sending: 'begun' }, leaseMs: LEASE_MS }),
  );
}

describe('a paid call in Redis', () => {
  it('costs one round trip a state, no reading of whole documents, and few commands', async () => {
    const { scripts, inner, answered, commands } = await costOf(async () => {
      await advance(await markedPurchase(), 'delivered');
    });
    assert.equal(scripts, STATES);
    assert.ok(inner <= INNER_COMMANDS, `${inner} commands`);
    assert.deepEqual(
      ['get', 'mget'].filter((reading) => commands.has(reading)),
      [],
    );
    assert.ok(answered <= ANSWERED_BYTES, `${answered} bytes`);
  });

  it('is delivered in the script of all others that were delivered about then', async () => {
    const marked = await Promise.all(Array.from({ length: AT_ONCE }, markedPurchase));
    const { scripts } = await costOf(async () => {
      await Promise.all(marked.map((record) => advance(record, 'delivered')));
    });
    assert.equal(scripts, 1);
    for (const { payId } of marked) assert.equal((await bed.store.ledger.read(payId))?.state, 'delivered');
  });

  it('is on the pages of receipts and events, and a replay for its proof, while its write waits for others', async () => {
    const [one, other] = [await markedPurchase(), await markedPurchase()];
    const writes = [advance(one, 'delivered')];
    const { receipts } = await bed.store.receipts.page({ limit: 1, requestId: one.requestId });
    assert.deepEqual(
      receipts.map(({ delivered }) => delivered),
      [true],
    );
    const before = await bed.store.feed.page({ limit: 10, requestId: other.requestId });
    writes.push(advance(other, 'delivered'));
    const after = await bed.store.feed.page({ limit: 10, requestId: other.requestId });
    assert.equal(after.events.length, before.events.length + 1);
    const third = await markedPurchase();
    writes.push(advance(third, 'delivered'));
    const again = await bed.store.ledger.reserve({ terms: third, owner: randomUUID(), leaseMs: LEASE_MS });
    assert.equal(again.kind, 'completed');
    await Promise.all(writes);
  });

  it('is written in the script of the others of its turn, and fails alone', async () => {
    const [damaged, ...sound] = await Promise.all(Array.from({ length: AT_ONCE }, () => bed.reserved(terms())));
    assert.ok(damaged !== undefined);
    await bed.damage(`pay:${damaged.payId}`);
    const { scripts } = await costOf(async () => {
      const [first, ...others] = await Promise.allSettled([damaged, ...sound].map((one) => advance(one, 'settling')));
      assert.equal(first?.status, 'rejected');
      for (const other of others) assert.equal(other.status, 'fulfilled');
    });
    assert.equal(scripts, 1);
  });
});

describe('a queue of events in Redis', () => {
  it('costs one round trip a batch', async () => {
    const queue = randomUUID();
    const { scripts } = await costOf(async () => {
      for (const sequence of [1, 2, 3])
        await bed.store.feed.append([event('resource.requested', randomUUID())], { queue, sequence });
    });
    assert.equal(scripts, 3);
  });
});
