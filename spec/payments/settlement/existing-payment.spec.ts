import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KeptAnswer, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import type { SettlementRequest, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { keyDigest } from '../../../src/payments/settlement/stored-purchase.ts';
import { keptAnswer, sha256 } from '../ledger/samples.ts';
import { EXPIRED, HASH } from './scripted-rail.ts';
import { worldOfEachTest } from './world.ts';

const KEY = 'key-of-the-buyer';
const OTHER_KEY = 'key-of-an-onlooker';
const DAY_MS = 24 * 60 * 60 * 1_000;
/** In the order in which a payment comes to them. */
const REFUND_STATES = ['refundDue', 'refunding', 'refunded'] as const;
/** `running`: leased to a running attempt. `uncertain`: settling, and no attempt works on it. */
type Standing = Exclude<PaymentState, 'reserved' | 'settling'> | 'running' | 'uncertain';

describe('the same proof again: the table of contract 4.3 and 4.4', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, later, record } = world;

  const withKey = (key: string | undefined): Pick<SettlementRequest, 'terms'> => {
    const { keyDigest: _none, ...terms } = world.terms;
    return { terms: key === undefined ? terms : { ...terms, keyDigest: keyDigest(terms.payId, key) } };
  };
  /** Brings the payment of a first call with this key into this state. */
  const standing = async (where: Standing, key?: string, answer: KeptAnswer = keptAnswer()): Promise<void> => {
    world.terms = withKey(key).terms;
    const { script } = world.peer;
    if (where === 'uncertain') script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    if (where === 'refused') script.settle = async () => EXPIRED;
    if (where === 'uncertain' || where === 'refused') {
      await settleOnce();
      script.reconcile = async () => ({ kind: 'unknown', cause: 'no answer' });
      return;
    }
    const result = await pay();
    if (where === 'delivered') await world.deliver(result, { answer });
    const refund = (REFUND_STATES as readonly Standing[]).indexOf(where);
    if (where === 'undelivered' || refund >= 0) {
      await world.failDelivery(result);
    }
    if (refund >= 0) {
      const { record: held } = await pay();
      const { payId, owner, fence } = held;
      for (const to of REFUND_STATES.slice(0, refund + 1)) {
        const facts = to === 'refundDue' ? {} : { refundTransaction: HASH };
        await world.ledger.advance({ payId, owner, fence, step: to, to, leaseMs: 0, facts, events: [] });
      }
    }
    if (where === 'settled') later(8_000);
  };
  const answerOf = (result: SettlementResult): string => {
    if (result.kind === 'spent') return `spent ${result.state}`;
    return result.kind === 'replayed' ? `replayed${result.joined ? ' joined' : ''}` : result.kind;
  };

  /** The state, the key of the first call, the key of the next call, the answer. */
  const rows: readonly (readonly [Standing, string | undefined, string | undefined, string])[] = [
    ['running', undefined, undefined, 'in_flight'],
    ['running', KEY, KEY, 'in_flight'],
    ['running', KEY, undefined, 'in_flight'],
    ['running', undefined, KEY, 'in_flight'],
    ['settled', undefined, undefined, 'paid'],
    ['settled', KEY, KEY, 'paid'],
    ['settled', KEY, undefined, 'in_flight'],
    ['settled', KEY, OTHER_KEY, 'in_flight'],
    ['delivered', undefined, undefined, 'spent delivered'],
    ['delivered', KEY, KEY, 'replayed'],
    ['delivered', KEY, undefined, 'spent delivered'],
    ['delivered', KEY, OTHER_KEY, 'spent delivered'],
    ['delivered', undefined, KEY, 'spent delivered'],
    ['undelivered', undefined, undefined, 'paid'],
    ['undelivered', undefined, KEY, 'paid'],
    ['undelivered', KEY, KEY, 'paid'],
    ['undelivered', KEY, undefined, 'spent undelivered'],
    ['undelivered', KEY, OTHER_KEY, 'spent undelivered'],
    ['uncertain', undefined, undefined, 'uncertain'],
    ['uncertain', KEY, KEY, 'uncertain'],
    ['uncertain', KEY, undefined, 'in_flight'],
    ['refused', undefined, undefined, 'refused'],
    ['refused', KEY, OTHER_KEY, 'refused'],
    ['refundDue', undefined, undefined, 'spent refundDue'],
    ['refundDue', KEY, KEY, 'spent refundDue'],
    ['refunding', KEY, KEY, 'spent refunding'],
    ['refunded', KEY, KEY, 'spent refunded'],
  ];
  for (const [where, first, now, answer] of rows)
    it(`${where}, first with ${first ?? 'no key'}, now with ${now ?? 'none'}: ${answer}`, async () => {
      await standing(where, first);
      const result = await settleOnce(withKey(now));
      assert.equal(answerOf(result), answer);
      if (result.kind === 'replayed') assert.deepEqual(Buffer.from(result.kept.body), Buffer.from(keptAnswer().body));
      if (result.kind === 'refused') assert.equal(result.owed.reason, EXPIRED.reason);
    });

  const everywhere: readonly Standing[] = [
    'running',
    'settled',
    'delivered',
    'undelivered',
    'uncertain',
    'refused',
    ...REFUND_STATES,
  ];
  for (const where of everywhere)
    it(`${where}, for another purchase: used, with the key of the first call a conflict; nothing changes`, async () => {
      await standing(where, KEY);
      const before = await record();
      const elsewhere = (key: string | undefined) => ({
        terms: { ...withKey(key).terms, bind: sha256('another input') },
      });
      assert.equal(answerOf(await settleOnce(elsewhere(undefined))), 'spent used');
      assert.equal(answerOf(await settleOnce(elsewhere(OTHER_KEY))), 'spent used');
      assert.equal(answerOf(await settleOnce(elsewhere(KEY))), 'conflict');
      assert.deepEqual(await record(), before);
    });

  describe('a call that came while the answer was being made', () => {
    it('needs the key all the same when the first call had one', async () => {
      await standing('delivered', KEY);
      assert.equal(answerOf(await settleOnce(withKey(undefined), world.ledger, true)), 'spent delivered');
      assert.equal(answerOf(await settleOnce(withKey(OTHER_KEY), world.ledger, true)), 'spent delivered');
      assert.equal(answerOf(await settleOnce(withKey(KEY), world.ledger, true)), 'replayed joined');
    });

    it('does not get it when neither call has a secret', async () => {
      await standing('delivered');
      assert.equal(answerOf(await settleOnce({}, world.ledger, true)), 'spent delivered');
    });
  });

  it('the key opens the stored answer for a day', async () => {
    await standing('delivered', KEY);
    later(DAY_MS - 1);
    assert.equal(answerOf(await settleOnce(withKey(KEY))), 'replayed');
    later(1);
    assert.equal(answerOf(await settleOnce(withKey(KEY))), 'spent delivered');
  });

  it('an answer above the limit was not stored: 409 also with the key', async () => {
    await standing('delivered', KEY, keptAnswer(new Uint8Array(262_145)));
    assert.equal(answerOf(await settleOnce(withKey(KEY))), 'spent delivered');
  });

  it('a resume is neither a settlement nor a verification, and a call without the key uses no attempt up', async () => {
    await standing('undelivered', KEY);
    const tries = (await record())?.tries;
    for (let question = 0; question < 20; question += 1) await settleOnce(withKey(undefined));
    assert.equal((await record())?.tries, tries);
    assert.equal(answerOf(await settleOnce(withKey(KEY))), 'paid');
    assert.deepEqual(world.peer.names(), ['verify', 'settle']);
  });
});
