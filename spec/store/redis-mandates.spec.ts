import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import type { MandateClaim } from '../../src/mandates/register/register.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { AT, claimOf, mandateText, useOf } from '../mandates/register/register-map.ts';
import { holder, move, recordIn, terms } from '../payments/ledger/samples.ts';
import { lossyStore } from './lossy-store.ts';
import { done, LEASE_MS } from './opened.ts';
import { everything, redisBed, TAG } from './redis-bed.ts';

const bed = redisBed();
const reserved = (claim: MandateClaim): Promise<PaymentRecord> =>
  bed.reserved(terms(randomUUID(), { mandate: mandateText(claim) }));
const settling = async (claim: MandateClaim): Promise<PaymentRecord> =>
  done(await bed.store.ledger.advance(move(await reserved(claim), 'settling')));
const monthly = (id: string) => [
  useOf(id, { units: '9007199254740991', budgetUnits: '9007199254740991', periodStart: AT - 60 }),
];

describe('the data of mandates in Redis', () => {
  it('is empty while no payment brings one', async () => {
    const { ledger } = bed.store;
    await ledger.advance(move(await bed.reserved(), 'settling'));
    await ledger.discard(holder(await bed.reserved()), []);
    assert.deepEqual(await bed.redis.keys(`${TAG}ap2:*`), [`${TAG}ap2:epoch`]);
  });

  it('counts units as text, so that the largest budget is exact', async () => {
    const id = randomUUID();
    const record = await settling(claimOf(undefined, { at: AT + 0.25, open: monthly(id) }));
    const at = (AT + 0.25) * 1_000;
    const pending = { spent: '0', pending: '9007199254740991', uses: 0, puses: 1, last: 0, plast: at };
    assert.partialDeepStrictEqual(await bed.held(`ap2:open:${id}`), pending);
    await bed.store.ledger.advance(move(record, 'settled'));
    const spent = { spent: '9007199254740991', pending: '0', uses: 1, puses: 0, last: at, plast: 0 };
    assert.partialDeepStrictEqual(await bed.held(`ap2:open:${id}`), spent);
  });

  it('ends: each use when no mandate under it can pass any more, a call with the last of its uses', async () => {
    const { redis, store } = bed;
    const [call, name, id] = [randomUUID(), randomUUID(), randomUUID()];
    const open = [useOf(id, undefined, AT + 500)];
    await store.mandates.reserve(call, claimOf(name, { onceUntil: AT + 900, open }));
    for (const [key, wanted] of [
      [`once:m:${name}`, 900_000],
      [`once:j:${name}`, 900_000],
      [`open:${id}`, 500_000],
      [`held:${call}`, 900_000],
    ] as const) {
      const ms = await redis.pttl(`${TAG}ap2:${key}`);
      assert.ok(ms > wanted - 5_000 && ms <= wanted, `${key} lives ${ms} ms`);
    }
  });
});

describe('a command about a mandate whose answer is lost, sent again', () => {
  const over = lossyStore(bed);
  const twice = async <T>(send: () => Promise<T>): Promise<T> => {
    const before = await everything(bed);
    await over.lost(send);
    const once = await everything(bed);
    assert.notDeepEqual(once, before, 'the first one has to have arrived');
    const answer = await send();
    assert.deepEqual(await everything(bed), once);
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
      assert.equal(await bed.held(`ap2:held:${name}`), undefined);
    }
  });
});
