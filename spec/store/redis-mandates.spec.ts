import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import type { MandateClaim } from '../../src/mandates/register/register.ts';
import { SWEPT_AT_ONCE } from '../../src/mandates/register/register-table.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { AT, claimOf, mandateText, useOf } from '../mandates/register/register-map.ts';
import { holder, move, recordIn, terms } from '../payments/ledger/samples.ts';
import { lossyStore } from './lossy-store.ts';
import { done, LEASE_MS } from './opened.ts';
import { redisBed } from './redis-bed.ts';

const AP2 = '{acg:shop}:ap2:';
const KEYS = ['once', 'open', 'open:ends', 'held', 'held:ends'].map((name) => AP2 + name);

const bed = redisBed();
const reserved = (claim: MandateClaim): Promise<PaymentRecord> =>
  bed.reserved(terms(randomUUID(), { mandate: mandateText(claim) }));
const settling = async (claim: MandateClaim): Promise<PaymentRecord> =>
  done(await bed.store.ledger.advance(move(await reserved(claim), 'settling')));
const monthly = (id: string) => [
  useOf(id, { units: '9007199254740991', budgetUnits: '9007199254740991', periodStart: AT - 60 }),
];

/** The register as it is stored. */
async function register(): Promise<unknown> {
  const { redis } = bed;
  return {
    once: await redis.zrange(`${AP2}once`, '0', '-1', 'WITHSCORES'),
    open: await redis.hgetall(`${AP2}open`),
    ends: await redis.zrange(`${AP2}open:ends`, '0', '-1', 'WITHSCORES'),
    held: await redis.hgetall(`${AP2}held`),
    heldEnds: await redis.zrange(`${AP2}held:ends`, '0', '-1', 'WITHSCORES'),
  };
}

describe('the data of mandates in Redis', () => {
  it('is empty while no payment brings one', async () => {
    const { ledger } = bed.store;
    await ledger.advance(move(await bed.reserved(), 'settling'));
    await ledger.discard(holder(await bed.reserved()), []);
    assert.equal(await bed.redis.exists(...KEYS), 0);
  });

  it('is numbers as text, without exponent and without a sign, also at the largest budget', async () => {
    const id = randomUUID();
    const record = await settling(claimOf(undefined, { at: AT + 0.25, open: monthly(id) }));
    const pending = JSON.parse((await bed.redis.hget(`${AP2}open`, id)) ?? '{}');
    const { ends, ...counts } = pending;
    const at = `${(AT + 0.25) * 1_000}`;
    assert.deepEqual(counts, { spent: '0', pending: '9007199254740991', uses: '0', puses: '1', last: '0', plast: at });
    assert.match(ends, /^\d{13}$/);
    await bed.store.ledger.advance(move(record, 'settled'));
    const spent = JSON.parse((await bed.redis.hget(`${AP2}open`, id)) ?? '{}');
    assert.deepEqual(spent, {
      ...{ spent: '9007199254740991', pending: '0', uses: '1', puses: '0', last: at, plast: '0' },
      ends,
    });
  });

  it('expires: every key is kept as long as its longest entry', async () => {
    const { redis, store } = bed;
    await redis.del(...KEYS);
    const open = [useOf(randomUUID(), undefined, AT + 500)];
    await store.mandates.reserve(randomUUID(), claimOf(undefined, { onceUntil: AT + 900, open }));
    await store.mandates.reserve(randomUUID(), claimOf(undefined, { onceUntil: AT + 100 }));
    const left = await Promise.all(KEYS.map((key) => redis.pttl(key)));
    const expected = [900_000, 500_000, 500_000, 900_000, 900_000];
    left.forEach((ms, i) => {
      const wanted = expected[i] ?? 0;
      assert.ok(ms > wanted - 5_000 && ms <= wanted, `${KEYS[i]} lives ${ms} ms`);
    });
  });

  it('is swept as it is written to, so that the entries of many calls at once do not stay', async () => {
    const { redis, store } = bed;
    await redis.del(...KEYS);
    await store.mandates.reserve('stays', claimOf('stays', { open: monthly('stays') }));
    const over = 2 * SWEPT_AT_ONCE;
    const brief = (i: number) => claimOf(`over-${i}`, { onceUntil: AT, open: [useOf(`over-${i}`, undefined, AT)] });
    for (let i = 0; i < over; i += 1) await store.mandates.reserve(`over-${i}`, brief(i));
    for (let i = 0; i < 4; i += 1) await store.mandates.reserve(`later-${i}`, claimOf(`later-${i}`));
    assert.equal(await redis.zcard(`${AP2}once`), 10);
    assert.deepEqual(Object.keys(await redis.hgetall(`${AP2}open`)), ['stays']);
    assert.deepEqual(await redis.zrange(`${AP2}open:ends`, '0', '-1'), ['stays']);
    const names = ['stays', 'later-0', 'later-1', 'later-2', 'later-3'];
    assert.deepEqual(Object.keys(await redis.hgetall(`${AP2}held`)).toSorted(), names.toSorted());
    assert.equal(await redis.zcard(`${AP2}held:ends`), names.length);
  });
});

describe('a command about a mandate whose answer is lost, sent again', () => {
  const over = lossyStore(bed);
  const twice = async <T>(send: () => Promise<T>): Promise<T> => {
    const before = await register();
    await over.lost(send);
    const once = await register();
    assert.notDeepEqual(once, before, 'the first one has to have arrived');
    const answer = await send();
    assert.deepEqual(await register(), once);
    return answer;
  };
  const claim = (): MandateClaim => claimOf(undefined, { open: monthly(randomUUID()) });

  it('reserves it once, for a payment', async () => {
    const wanted = terms(randomUUID(), { mandate: mandateText(claim()) });
    const command = { terms: wanted, owner: randomUUID(), leaseMs: LEASE_MS };
    assert.equal(recordIn(await twice(() => over.store.ledger.reserve(command))).owner, command.owner);
  });

  it('spends it once', async () => {
    const command = move(await settling(claim()), 'settled');
    assert.equal((await twice(() => over.store.ledger.advance(command))).kind, 'done');
  });

  it('gives it back once, with a refusal and with a deleted reservation', async () => {
    const command = move(await settling(claim()), 'refused');
    assert.equal((await twice(() => over.store.ledger.advance(command))).kind, 'done');
    const held = holder(await reserved(claim()));
    assert.equal((await twice(() => over.store.ledger.discard(held, []))).kind, 'gone');
  });

  it('reserves, spends and gives back once what a free call brings', async () => {
    const { mandates } = over.store;
    for (const how of ['commit', 'release'] as const) {
      const name = randomUUID();
      const wanted = claim();
      assert.deepEqual(await twice(() => mandates.reserve(name, wanted)), { kind: 'reserved' });
      await twice(() => mandates.finish(name, how));
      assert.equal(await bed.redis.hget(`${AP2}held`, name), null);
    }
  });
});
