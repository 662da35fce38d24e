import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SettlementHistory } from '../../../../src/payments/rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../../support/hostile-facilitator.ts';
import { json, noWriteAhead } from '../hostile-answers.ts';
import { remoteRail } from '../remote.ts';
import { freshAccount, freshAddress, genuineProof, nowSeconds, offerFor, termsFor } from '../signing.ts';

const terms = termsFor();
const offer = offerFor(terms);
const { network } = terms;
const account = freshAccount();
const payer = account.address;
const hash = INVENTED_TRANSACTION;

const settled = (changes: object = {}): object => ({
  success: true,
  transaction: INVENTED_TRANSACTION,
  network,
  payer,
  ...changes,
});
const denied = (errorReason: unknown, changes: object = {}): object => ({
  success: false,
  errorReason,
  transaction: '',
  network,
  ...changes,
});

describe('what a facilitator says about a settlement, with no chain to ask', () => {
  let facilitator: HostileFacilitator;
  let rail: PaymentRail & { close(): Promise<void> };
  let proof: Proof;

  before(async () => {
    facilitator = await startHostileFacilitator(network);
    rail = remoteRail([facilitator.url], { network });
    proof = await genuineProof(account, terms);
  });
  after(async () => {
    await rail.close();
    await facilitator.stop();
  });

  const settle = (answer: ScriptedAnswer, history?: SettlementHistory) => {
    facilitator.script({ settle: () => answer });
    return rail.settle(proof, offer, noWriteAhead, history);
  };

  const rows: readonly (readonly [what: string, answer: ScriptedAnswer, outcome: object])[] = [
    ['success', json(settled()), { kind: 'settled', evidence: 'claim', transaction: hash }],
    [
      'success without a payer',
      json(settled({ payer: undefined })),
      { kind: 'settled', evidence: 'claim', transaction: hash },
    ],
    ['success in a 5xx', json(settled(), 500), { kind: 'settled', evidence: 'claim', transaction: hash }],
    [
      'success, hash in capitals',
      json(settled({ transaction: `0x${'AB'.repeat(32)}` })),
      { kind: 'settled', evidence: 'claim', transaction: hash },
    ],
    ['success on another network', json(settled({ network: 'eip155:1' })), { kind: 'uncertain' }],
    ['success on no network', json(settled({ network: undefined })), { kind: 'uncertain' }],
    ['success without a hash', json(settled({ transaction: '' })), { kind: 'uncertain' }],
    ['success with a malformed hash', json(settled({ transaction: '0xabc' })), { kind: 'uncertain' }],
    ['success with a hash that is no text', json(settled({ transaction: { toString: 1 } })), { kind: 'uncertain' }],
    ['success for another payer', json(settled({ payer: freshAddress() })), { kind: 'uncertain', transaction: hash }],
    ['success for a payer that is no text', json(settled({ payer: 7 })), { kind: 'uncertain', transaction: hash }],
    [
      'definite refusal',
      json(denied('insufficient_funds')),
      { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' },
    ],
    [
      'definite refusal in a 4xx',
      json(denied('insufficient_funds'), 400),
      { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' },
    ],
    [
      'definite refusal in words of the packages',
      json(denied('invalid_exact_evm_recipient_mismatch')),
      { kind: 'refused', reason: 'invalid_exact_evm_payload_recipient_mismatch', evidence: 'unsent' },
    ],
    [
      'refusal with a hash',
      json(denied('insufficient_funds', { transaction: hash })),
      { kind: 'uncertain', transaction: hash },
    ],
    [
      'refusal with a malformed hash',
      json(denied('insufficient_funds', { transaction: '0x1' })),
      { kind: 'uncertain' },
    ],
    [
      'pending with a hash',
      json(denied('settlement_pending', { transaction: hash })),
      { kind: 'uncertain', transaction: hash },
    ],
    ['pending without a hash', json(denied('settlement_pending')), { kind: 'uncertain' }],
    ['a failed transaction', json(denied('invalid_exact_evm_transaction_failed')), { kind: 'uncertain' }],
    ['a spent nonce', json(denied('invalid_exact_evm_nonce_already_used')), { kind: 'uncertain' }],
    ['an unexpected error', json(denied('unexpected_settle_error')), { kind: 'uncertain' }],
    ['a foreign reason', json(denied('kyt_blocked')), { kind: 'uncertain' }],
    ['a reason in prose', json(denied('Something went wrong')), { kind: 'uncertain' }],
  ];
  for (const [what, answer, outcome] of rows)
    it(`${what}: ${'kind' in outcome ? outcome.kind : ''}`, async () => {
      const settlement = await settle(answer);
      const { cause: _cause, ...facts } = { cause: '', ...settlement };
      assert.deepEqual(facts, outcome);
    });

  it('a definite refusal of a second attempt proves nothing about the first', async () => {
    const settlement = await settle(json(denied('insufficient_funds')), { sentBefore: true });
    assert.equal(settlement.kind, 'uncertain');
  });

  describe('that an earlier attempt may have sent', () => {
    const SPENT = 'invalid_exact_evm_nonce_already_used';
    const sentBefore = true;
    it('is paid when its nonce is used, with the hash if one is named', async () => {
      const settlement = { kind: 'settled', evidence: 'nonce' };
      assert.deepEqual(await settle(json(denied(SPENT)), { sentBefore }), settlement);
      const inOtherWords = json(denied('invalid_exact_evm_payload_nonce_already_used', { transaction: hash }), 400);
      assert.deepEqual(await settle(inOtherWords, { sentBefore }), { ...settlement, transaction: hash });
    });

    it('stays uncertain when no verdict says so', async () => {
      assert.equal((await settle(json(denied(SPENT), 503), { sentBefore })).kind, 'uncertain');
      assert.equal((await settle(json({ error: SPENT }), { sentBefore })).kind, 'uncertain');
    });

    it('is asked of /verify once it is too late to send it again', async () => {
      const old = await genuineProof(account, terms, { validBefore: String(nowSeconds()) });
      const reconciled = (reason: string, history?: SettlementHistory, known?: string) => {
        facilitator.script({ verify: () => json({ isValid: false, invalidReason: reason }) });
        return rail.reconcile(old, offer, known, history);
      };
      assert.deepEqual(await reconciled(SPENT, { sentBefore }), { kind: 'settled', evidence: 'nonce' });
      const transaction = hash;
      assert.deepEqual(await reconciled(SPENT, { sentBefore }, hash), {
        kind: 'settled',
        evidence: 'nonce',
        transaction,
      });
      const expired = 'invalid_exact_evm_payload_authorization_valid_before';
      assert.equal((await reconciled(expired, { sentBefore })).kind, 'unknown');
      assert.equal((await reconciled(SPENT)).kind, 'unknown');
    });
  });

  it('is asked once, even when the connection breaks', async () => {
    const before = facilitator.calls.length;
    await settle({ kind: 'reset' });
    assert.equal(facilitator.calls.length, before + 1);
  });

  it('is not asked to settle what does not pay the offer', async () => {
    const before = facilitator.calls.length;
    const dearer = { ...offer, amount: '20000' };
    assert.equal((await rail.verify(proof, dearer)).kind, 'refused');
    assert.equal((await rail.settle(proof, dearer, noWriteAhead)).kind, 'uncertain');
    assert.equal(facilitator.calls.length, before);
  });
});
