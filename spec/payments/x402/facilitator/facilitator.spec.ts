import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../../support/hostile-facilitator.ts';
import { DEADLINES, json, NO_VERDICT, noWriteAhead, text } from '../hostile-answers.ts';
import { remoteRail } from '../remote.ts';
import { freshAccount, freshAddress, genuineProof, nowSeconds, offerFor, termsFor } from '../signing.ts';

const terms = termsFor();
const offer = offerFor(terms);
const { network } = terms;
const account = freshAccount();
const payer = account.address;

describe('a remote facilitator', () => {
  let facilitator: HostileFacilitator;
  let rail: PaymentRail & { close(): Promise<void> };
  let proof: Proof;

  before(async () => {
    facilitator = await startHostileFacilitator(network);
    const auth = { type: 'bearer', token: 'a-facilitator-token' } as const;
    rail = remoteRail([`${facilitator.url}/`], { network }, auth);
    proof = await genuineProof(account, terms);
  });
  beforeEach(() => facilitator.script({}));
  after(async () => {
    await rail.close();
    await facilitator.stop();
  });

  const verify = (answer: ScriptedAnswer) => {
    facilitator.script({ verify: () => answer });
    return rail.verify(proof, offer);
  };
  const settle = (answer: ScriptedAnswer) => {
    facilitator.script({ settle: () => answer });
    return rail.settle(proof, offer, noWriteAhead);
  };

  it('is sent our requirement and our word only, with its credentials', async () => {
    const doctored: Proof = {
      ...proof,
      payload: {
        ...proof.payload,
        accepted: { ...proof.payload.accepted, maxTimeoutSeconds: 9, extra: { ...offer.extra, note: 'spam' } },
        resource: { url: proof.payload.resource?.url ?? '', description: 'spam' },
        extensions: { bazaar: { info: 'spam' }, 'payment-identifier': { info: { id: 'a'.repeat(16) } } },
      },
    };
    assert.deepEqual(await rail.verify(doctored, offer), { kind: 'valid' });
    const { body, headers } = facilitator.calls.at(-1) ?? assert.fail('no call');
    assert.deepEqual(body, {
      x402Version: 2,
      paymentPayload: {
        x402Version: 2,
        resource: { url: proof.payload.resource?.url },
        accepted: offer,
        payload: proof.payload.payload,
        extensions: { 'payment-identifier': { info: { id: 'a'.repeat(16) } } },
      },
      paymentRequirements: offer,
    });
    assert.equal(headers['authorization'], 'Bearer a-facilitator-token');
  });

  for (const [what, answer] of NO_VERDICT)
    it(`gives no verdict with ${what}: unavailable before, uncertain after settlement began`, async () => {
      const begun = performance.now();
      assert.equal((await verify(answer)).kind, 'unavailable');
      const settlement = await settle(answer);
      assert.ok(performance.now() - begun < 3 * (DEADLINES.verifyMs + DEADLINES.settleMs), 'far too slow');
      assert.equal(settlement.kind, 'uncertain');
      assert.ok(!('transaction' in settlement));
    });

  it('that cannot be reached is unavailable, and uncertain once settling', async () => {
    const nobody = remoteRail(['http://127.0.0.1:9'], { network });
    assert.equal((await nobody.verify(proof, offer)).kind, 'unavailable');
    assert.equal((await nobody.settle(proof, offer, noWriteAhead)).kind, 'uncertain');
    assert.equal((await nobody.check())?.found, 'unreachable');
    await nobody.close();
  });

  describe('at /verify', () => {
    const SIGNATURE = 'invalid_exact_evm_payload_signature';
    const rows: readonly (readonly [what: string, answer: ScriptedAnswer, verdict: object])[] = [
      ['approval', json({ isValid: true, payer }), { kind: 'valid' }],
      ['approval without a payer', json({ isValid: true }), { kind: 'valid' }],
      ['approval in a 4xx', json({ isValid: true, payer: payer.toLowerCase() }, 400), { kind: 'valid' }],
      ['refusal', json({ isValid: false, invalidReason: 'insufficient_funds' }), refused('insufficient_funds')],
      [
        'refusal in a 4xx',
        json({ isValid: false, invalidReason: 'insufficient_funds' }, 402),
        refused('insufficient_funds'),
      ],
      [
        'refusal in words of the packages',
        json({ isValid: false, invalidReason: 'invalid_exact_evm_signature' }),
        refused(SIGNATURE),
      ],
      ['refusal in foreign words', json({ isValid: false, invalidReason: 'kyt_blocked' }), refused('kyt_blocked')],
      ['refusal in prose', json({ isValid: false, invalidReason: 'Error: 0xdead failed' }), refused('payment_refused')],
      ['refusal without a reason', json({ isValid: false }), refused('payment_refused')],
      [
        'refusal for a spent nonce',
        json({ isValid: false, invalidReason: 'invalid_exact_evm_nonce_already_used' }),
        { ...refused('invalid_exact_evm_nonce_already_used'), nonceSpent: true },
      ],
    ];
    for (const [what, answer, verdict] of rows)
      it(`${what}`, async () => {
        assert.deepEqual(await verify(answer), verdict);
      });

    it('approval for another payer is no verdict', async () => {
      assert.equal((await verify(json({ isValid: true, payer: freshAddress() }))).kind, 'unavailable');
    });

    it('a connection that breaks is tried once more', async () => {
      const answers: ScriptedAnswer[] = [{ kind: 'reset' }, json({ isValid: true })];
      facilitator.script({ verify: () => answers.shift() ?? assert.fail('asked a third time') });
      assert.deepEqual(await rail.verify(proof, offer), { kind: 'valid' });
    });
  });

  it('without a chain to ask, an unfinished payment may be sent again while it is valid, and is unknown after', async () => {
    assert.equal((await rail.reconcile(proof, offer, undefined)).kind, 'open');
    const old = await genuineProof(account, terms, { validBefore: String(nowSeconds()) });
    assert.equal((await rail.reconcile(old, offer, INVENTED_TRANSACTION)).kind, 'unknown');
  });

  describe('at /supported', () => {
    const kinds = (kind: object): ScriptedAnswer =>
      json({ kinds: [{ x402Version: 2, scheme: 'exact', network, ...kind }] });
    const rows: readonly (readonly [what: string, answer: ScriptedAnswer, healthy: boolean])[] = [
      ['our network', kinds({}), true],
      ['the family of our network', kinds({ network: 'eip155:*' }), true],
      ['another network', kinds({ network: 'eip155:1' }), false],
      ['another scheme', kinds({ scheme: 'upto' }), false],
      ['version 1 only', kinds({ x402Version: 1 }), false],
      ['a 404: an answer, and not a required endpoint', json({}, 404), true],
      ['a 503', json({}, 503), false],
      ['a 401', json({}, 401), false],
      ['HTML', text('<html>', 'text/html'), false],
    ];
    for (const [what, answer, healthy] of rows)
      it(`${what}: ${healthy ? 'ready' : 'not ready'}`, async () => {
        facilitator.script({ supported: () => answer });
        assert.equal((await rail.check()) === undefined, healthy);
      });
  });
});

function refused(reason: string) {
  return { kind: 'refused', reason, nonceSpent: false };
}
