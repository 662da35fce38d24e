import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createRemoteRail } from '../../../src/payments/x402/facilitator.ts';
import type { Proof, SettlementHistory } from '../../../src/payments/x402/rail.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../support/hostile-facilitator.ts';
import { DEADLINES, json, noWriteAhead } from './hostile-answers.ts';
import { freshAccount, freshAddress, genuineProof, offerFor, termsFor } from './signing.ts';

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
  let rail: ReturnType<typeof createRemoteRail>;
  let proof: Proof;

  before(async () => {
    facilitator = await startHostileFacilitator(network);
    const auth = { type: 'none' } as const;
    rail = createRemoteRail({
      facilitator: { mode: 'remote', url: facilitator.url, auth },
      network,
      chain: undefined,
      deadlines: DEADLINES,
    });
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
    ['success', json(settled()), { kind: 'settled', transaction: hash }],
    ['success without a payer', json(settled({ payer: undefined })), { kind: 'settled', transaction: hash }],
    ['success in a 5xx', json(settled(), 500), { kind: 'settled', transaction: hash }],
    [
      'success, hash in capitals',
      json(settled({ transaction: `0x${'AB'.repeat(32)}` })),
      { kind: 'settled', transaction: hash },
    ],
    ['success on another network', json(settled({ network: 'eip155:1' })), { kind: 'uncertain' }],
    ['success on no network', json(settled({ network: undefined })), { kind: 'uncertain' }],
    ['success without a hash', json(settled({ transaction: '' })), { kind: 'uncertain' }],
    ['success with a malformed hash', json(settled({ transaction: '0xabc' })), { kind: 'uncertain' }],
    ['success with a hash that is no text', json(settled({ transaction: { toString: 1 } })), { kind: 'uncertain' }],
    ['success for another payer', json(settled({ payer: freshAddress() })), { kind: 'uncertain', transaction: hash }],
    ['success for a payer that is no text', json(settled({ payer: 7 })), { kind: 'uncertain', transaction: hash }],
    ['definite refusal', json(denied('insufficient_funds')), { kind: 'refused', reason: 'insufficient_funds' }],
    [
      'definite refusal in a 4xx',
      json(denied('insufficient_funds'), 400),
      { kind: 'refused', reason: 'insufficient_funds' },
    ],
    [
      'definite refusal in words of the packages',
      json(denied('invalid_exact_evm_recipient_mismatch')),
      { kind: 'refused', reason: 'invalid_exact_evm_payload_recipient_mismatch' },
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
