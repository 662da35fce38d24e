import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { createKeyRing, isSealed, type SealingKeys } from '../../../src/crypto/seal.ts';
import { sealedLedger } from '../../../src/payments/ledger/document-ledger.ts';
import type { PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { fencingToken } from '../../../src/payments/settlement/attempt.ts';
import { keptAnswer, move } from '../ledger/samples.ts';
import { ANSWER, EXPIRED, HASH, PAID, worldOfEachTest } from './world.ts';

const OLD: SealingKeys = [{ id: 'old', key: Buffer.alloc(32, 1) }];
const NEW: SealingKeys = [{ id: 'new', key: Buffer.alloc(32, 2) }];
const BOTH: SealingKeys = [...NEW, ...OLD];
const FIELDS = ['proof', 'backendRequest', 'rawTransaction'] as const;
const LEASE_MS = 7_000;

describe('a ledger that is sealed', () => {
  const world = worldOfEachTest();
  const { settleOnce, record, later, state } = world;
  let unreadable: string[] = [];
  beforeEach(() => {
    unreadable = [];
  });
  const withKeys = (keys: SealingKeys | undefined): PaymentLedger =>
    sealedLedger(
      world.ledger,
      () => keys && createKeyRing(keys),
      (what) => void unreadable.push(what),
    );
  /** An attempt that died before, or after, something was sent. */
  const left = async (at: 'reserved' | 'settling', keys: SealingKeys): Promise<PaymentRecord> => {
    const ledger = withKeys(keys);
    const reservation = await ledger.reserve({ terms: world.terms, owner: 'dead', leaseMs: LEASE_MS });
    assert.ok(reservation.kind === 'granted');
    if (at === 'settling') {
      const facts = { transaction: HASH, rawTransaction: '0x02f8' };
      const written = await ledger.advance(move(reservation.record, 'settling', { leaseMs: LEASE_MS, facts }));
      assert.equal(written.kind, 'done');
    }
    later(LEASE_MS + 1);
    return (await ledger.read(world.terms.payId)) ?? assert.fail('no record');
  };

  it('shows its store opaque text, and its callers what they wrote', async () => {
    const seen = await left('settling', OLD);
    const stored = await record();
    for (const field of FIELDS) {
      assert.ok(isSealed(stored?.[field] ?? ''), field);
      assert.equal(seen[field], field === 'rawTransaction' ? '0x02f8' : world.terms[field]);
    }
    const [due] = await withKeys(OLD).due(10);
    assert.deepEqual(due, seen);
    assert.deepEqual(unreadable, []);
  });

  it('opens with every key of its ring, and what was stored before there were keys', async () => {
    const plain = await left('reserved', OLD);
    for (const keys of [BOTH, OLD]) assert.deepEqual(await withKeys(keys).read(plain.payId), plain);
    await world.ledger.discard({ payId: plain.payId, owner: 'dead', fence: 1, step: 'x' }, []);
    await world.ledger.reserve({ terms: world.terms, owner: 'no keys', leaseMs: LEASE_MS });
    assert.equal((await withKeys(NEW).read(plain.payId))?.proof, world.terms.proof);
    assert.deepEqual(unreadable, []);
  });

  it('opens nothing of another record or field', async () => {
    const { payId } = await left('reserved', OLD);
    const stored = (await record()) ?? assert.fail('no record');
    const moved: PaymentLedger = {
      ...world.ledger,
      read: async () => ({ ...stored, proof: stored.backendRequest, backendRequest: stored.proof }),
    };
    const ring = createKeyRing(OLD);
    await sealedLedger(
      moved,
      () => ring,
      (what) => void unreadable.push(what),
    ).read(payId);
    assert.deepEqual(unreadable, ['proof', 'backendRequest']);
  });

  it('a settlement goes through as without, and its end keeps nothing of it', async () => {
    const result = await settleOnce({}, withKeys(OLD));
    assert.ok(result.kind === 'paid');
    const answer = keptAnswer(new Uint8Array([1, 2, 3]));
    const command = move(result.record, 'delivered', { keeping: { answer, forMs: LEASE_MS } });
    assert.equal((await withKeys(OLD).advance(command)).kind, 'done');
    const stored = (await record()) ?? assert.fail('no record');
    assert.deepEqual([stored.proof, stored.backendRequest], ['{}', '{}']);
    const kept = (await withKeys(OLD).kept(stored.payId)) ?? assert.fail('nothing kept');
    assert.deepEqual({ ...kept, body: [...kept.body] }, { ...answer, body: [1, 2, 3] });
    assert.equal(await withKeys(NEW).kept(stored.payId), undefined, 'one that cannot be opened is none');
    assert.equal(await withKeys(undefined).kept(stored.payId), undefined);
    assert.deepEqual(unreadable, ['answer', 'answer']);
  });

  it('an answer that waits for its payment is sealed with its state, and stays so for another time', async () => {
    const ledger = withKeys(OLD);
    world.closesWhileItWorks();
    assert.equal((await world.settleAfter({}, ledger)).kind, 'gate_closed');
    const { payId } = world.terms;
    const stored = (await world.ledger.kept(payId)) ?? assert.fail('nothing is kept');
    assert.ok(!Buffer.from(stored.body).includes('report'));
    assert.deepEqual(await ledger.kept(payId), ANSWER);
    world.gateOpen = true;
    const result = await world.settleAfter({}, withKeys(BOTH));
    assert.ok(result.kind === 'paid');
    await ledger.note({ ...fencingToken(result.record), leaseMs: LEASE_MS, keeping: { forMs: LEASE_MS } });
    assert.deepEqual(await world.ledger.kept(payId), stored, 'the bytes are not written again');
    later(LEASE_MS - 1);
    assert.deepEqual(await ledger.kept(payId), ANSWER);
    later(1);
    assert.equal(await ledger.kept(payId), undefined);
  });

  it('an answer whose key is gone is not paid for, and waits for its key', async () => {
    world.closesWhileItWorks();
    await world.settleAfter({}, withKeys(OLD));
    world.gateOpen = true;
    assert.equal((await world.settleAfter({}, withKeys(NEW))).kind, 'unavailable');
    assert.deepEqual([await state(), world.peer.names()], ['worked', ['verify']]);
    assert.equal((await world.settleAfter({}, withKeys(BOTH))).kind, 'paid');
    assert.equal(world.backend.called.length, 1);
  });

  for (const [what, keys] of [
    ['its key is gone', NEW],
    ['there are no keys any more', undefined],
  ] as const)
    describe(`an attempt is left behind, and ${what}`, () => {
      it('nothing was sent: it goes, nothing is charged, and the same proof begins anew', async () => {
        await left('reserved', OLD);
        const result = await settleOnce({}, withKeys(keys));
        assert.equal(result.kind, 'unavailable');
        assert.deepEqual(world.peer.names(), ['verify'], 'nothing of it was sent');
        assert.equal(await record(), undefined);
        assert.equal((await settleOnce({}, withKeys(keys))).kind, 'paid');
      });

      it('it may have been sent, and the chain shows it paid: it is delivered, and not charged again', async () => {
        await left('settling', OLD);
        world.peer.script.reconcile = async () => PAID;
        assert.equal((await settleOnce({}, withKeys(keys))).kind, 'paid');
        assert.deepEqual(world.peer.names(), ['verify', 'reconcile']);
      });

      it('it may have been sent, and the chain shows it worthless: the buyer may pay anew', async () => {
        await left('settling', OLD);
        world.peer.script.reconcile = async () => EXPIRED;
        assert.equal((await settleOnce({}, withKeys(keys))).kind, 'refused');
      });

      for (const reading of [{ kind: 'open' }, { kind: 'unknown', cause: 'no node' }] as const)
        it(`it may have been sent, and the chain shows ${reading.kind}: uncertain, never 402, and nothing is sent`, async () => {
          await left('settling', OLD);
          world.peer.script.reconcile = async () => reading;
          assert.equal((await settleOnce({}, withKeys(keys))).kind, 'uncertain');
          assert.deepEqual(world.peer.names(), ['verify', 'reconcile']);
          assert.equal(await state(), 'settling');
          // The key comes back, and with it the record.
          world.peer.script.reconcile = async () => PAID;
          assert.equal((await settleOnce({}, withKeys(OLD))).kind, 'paid');
        });
    });
});
