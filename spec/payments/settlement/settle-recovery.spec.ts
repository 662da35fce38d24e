import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import type { Reading } from '../../../src/payments/rail.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { EXPIRED, HASH, PAID, SPENT } from './scripted-rail.ts';
import { worldOfEachTest } from './world.ts';

const TOO_OLD = 'invalid_exact_evm_payload_authorization_valid_before';
const OPEN: Reading = { kind: 'open' };
const UNKNOWN: Reading = { kind: 'unknown', cause: 'no answer' };
const DAY_MS = 24 * 60 * 60 * 1_000;

/**
 * Two signs that the store lost a payment: the rail reports the nonce as spent, or
 * the proof is too old to be new.
 */
const SIGNS = ['spent', 'late'] as const;

describe('an authorization without a record that may have paid us', () => {
  const world = worldOfEachTest();
  const { settleOnce, later, record, types, receipts, broken, silent } = world;

  const bring = (
    sign: (typeof SIGNS)[number],
    reading: Reading,
    through?: PaymentLedger,
  ): Promise<SettlementResult> => {
    world.peer.script.verify = async () => (sign === 'spent' ? SPENT : { kind: 'valid' });
    world.peer.script.reconcile = async () => reading;
    return settleOnce(sign === 'late' ? { refusal: TOO_OLD } : {}, through);
  };

  const rows: readonly (readonly [(typeof SIGNS)[number], Reading, SettlementResult['kind']])[] = [
    ['spent', PAID, 'paid'],
    ['spent', EXPIRED, 'refused'],
    ['spent', OPEN, 'unavailable'],
    ['spent', UNKNOWN, 'unavailable'],
    ['late', PAID, 'paid'],
    ['late', EXPIRED, 'refused'],
    ['late', OPEN, 'refused'],
    ['late', UNKNOWN, 'unavailable'],
  ];
  for (const [sign, reading, kind] of rows)
    it(`${sign}, the chain shows ${reading.kind}: ${kind}`, async () => {
      const result = await bring(sign, reading);
      assert.equal(result.kind, kind);
      assert.ok(!world.peer.names().includes('settle'), 'nothing is sent');
      if (result.kind === 'refused') assert.equal(result.owed.reason, sign === 'late' ? TOO_OLD : SPENT.reason);
      if (kind !== 'paid') assert.equal(await record(), undefined, 'the question leaves nothing behind');
    });

  it('paid and sent back since: spent, and nothing is delivered for it', async () => {
    world.peer.script.sentBack = async () => true;
    const result = await bring('spent', PAID);
    assert.ok(result.kind === 'spent' && result.state === 'used');
    assert.equal(await record(), undefined);
    world.peer.script.sentBack = silent;
    assert.equal((await bring('spent', PAID)).kind, 'unavailable');
  });

  it('spent, and there is no chain to ask: called spent, because a 402 could charge a second time', async () => {
    world.peer.script.seesChain = false;
    const result = await bring('spent', OPEN);
    assert.ok(result.kind === 'spent' && result.state === 'used');
    assert.equal(await record(), undefined);
  });

  for (const sign of SIGNS)
    it(`${sign} and paid: the record is made again, marked so, and is no second settlement`, async () => {
      const result = await bring(sign, PAID);
      assert.ok(result.kind === 'paid');
      const { state, recovered, evidence, transaction } = result.record;
      assert.deepEqual([state, recovered, evidence, transaction], ['settled', 'chain', 'logs', HASH]);
      assert.deepEqual(await types(), ['resource.requested', 'payment.settled']);
      const [receipt] = await receipts();
      const { receiptId, callId } = world.terms;
      assert.deepEqual([receipt?.id, receipt?.metadata], [receiptId, { callId, recovered: 'chain' }]);
    });

  for (const sign of SIGNS)
    it(`${sign} and paid, with the policy "refuse": 409 material, never a 402`, async () => {
      world.onStoreLoss = 'refuse';
      const result = await bring(sign, PAID);
      assert.deepEqual(result, { kind: 'spent', state: 'used' });
      assert.equal(await record(), undefined);
    });

  it('is delivered once: what was delivered then is over', async () => {
    const result = await bring('spent', PAID);
    assert.ok(result.kind === 'paid');
    await world.deliver(result);
    const again = await bring('late', PAID);
    assert.ok(again.kind === 'spent' && again.state === 'delivered');
    assert.deepEqual(
      (await receipts()).map(({ delivered, metadata }) => [delivered, metadata]),
      [[true, { callId: world.terms.callId, recovered: 'chain' }]],
    );
  });

  it('is delivered until a day after the end of its validity, and not a millisecond longer', async () => {
    later(world.terms.validBefore * 1_000 + DAY_MS - world.clock);
    assert.equal((await bring('late', PAID)).kind, 'paid');
    world.terms = { ...world.terms, payId: 'f'.repeat(64) };
    later(1);
    assert.deepEqual(await bring('late', PAID), { kind: 'spent', state: 'used' });
  });

  it('late, and there is no chain to ask: refused without a question', async () => {
    world.peer.script.seesChain = false;
    assert.equal((await bring('late', PAID)).kind, 'refused');
    assert.deepEqual(world.peer.names(), []);
  });

  it('paid, and the store dies then: uncertain, and the next attempt finds it', async () => {
    const advance: PaymentLedger['advance'] = (command) =>
      command.to === 'settled' ? silent() : world.ledger.advance(command);
    const result = await bring('spent', PAID, broken({ advance }));
    assert.equal(result.kind, 'uncertain');
    assert.equal((await bring('spent', PAID)).kind, 'paid');
    assert.equal(await world.countOf('payment.settled'), 1);
  });

  it('a fault of the proof does not count against a record: an uncertain settlement is reconciled whatever its age', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    assert.equal((await settleOnce()).kind, 'uncertain');
    world.peer.script.reconcile = async () => PAID;
    const result = await settleOnce({ refusal: TOO_OLD });
    assert.ok(result.kind === 'paid' && result.record.recovered === undefined);
  });

  describe('the buyer of a payment that was found', () => {
    const TOKEN = 'a'.repeat(64);
    const OTHER = 'b'.repeat(64);
    /** The policy, the mark in the transaction, the digest of the token that came, the answer. */
    const owners: readonly (readonly [
      'exclusive' | 'shared' | 'refuse',
      string | undefined,
      string | undefined,
      SettlementResult['kind'],
    ])[] = [
      ['exclusive', undefined, undefined, 'paid'],
      ['exclusive', undefined, TOKEN, 'paid'],
      ['exclusive', TOKEN, TOKEN, 'paid'],
      ['exclusive', TOKEN, OTHER, 'spent'],
      ['exclusive', TOKEN, undefined, 'spent'],
      ['shared', undefined, undefined, 'spent'],
      ['shared', undefined, TOKEN, 'spent'],
      ['shared', TOKEN, TOKEN, 'paid'],
      ['shared', TOKEN, OTHER, 'spent'],
      ['shared', TOKEN, undefined, 'spent'],
      ['refuse', TOKEN, TOKEN, 'spent'],
    ];
    for (const [policy, mark, token, kind] of owners)
      it(`${policy}, ${mark ? 'marked' : 'not marked'}, ${token === undefined ? 'no token' : token === TOKEN ? 'the token' : 'another token'}: ${kind}`, async () => {
        world.payToExclusive = policy !== 'shared';
        world.onStoreLoss = policy === 'refuse' ? 'refuse' : 'deliver';
        world.peer.script.markOf = async () => mark;
        if (token !== undefined) world.terms = { ...world.terms, tokenDigest: token };
        // It may be too old by now to be the secret of a new purchase.
        world.peer.script.verify = async () => SPENT;
        world.peer.script.reconcile = async () => PAID;
        const result = await settleOnce({ token: { kind: 'worthless' } });
        assert.equal(result.kind, kind);
        if (result.kind === 'paid') {
          assert.equal(result.record.tokenDigest, mark, 'and it is the secret of the record again');
          assert.deepEqual(world.unclaimed, []);
          return;
        }
        assert.ok(result.kind === 'spent' && result.state === 'used');
        assert.deepEqual(world.unclaimed, [world.terms.payId]);
        assert.deepEqual([await record(), await receipts()], [undefined, []]);
      });

    it('is not decided while the node does not show the transaction', async () => {
      world.peer.script.markOf = silent;
      assert.equal((await bring('spent', PAID)).kind, 'unavailable');
      assert.deepEqual([await record(), world.unclaimed], [undefined, []]);
    });
  });
});
