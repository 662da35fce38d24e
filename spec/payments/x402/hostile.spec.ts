import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PrivateKeyAccount } from 'viem';
import type { Settlement } from '../../../src/payments/rail.ts';
import type { PaymentRail, Proof } from '../../../src/payments/x402/wire/types.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../support/hostile-facilitator.ts';
import { LIES, type Lie, NO_VERDICT, noWriteAhead, remoteRail } from './hostile.ts';
import { genuineProof, nowSeconds } from './signing.ts';
import { openStage, type Stage } from './stage.ts';

/** States of a payment on the chain, independent of the facilitator's answer. */
const CHAIN_STATES = ['open', 'paid', 'under way', 'cancelled'] as const;
type ChainState = (typeof CHAIN_STATES)[number];

const ANSWERS: readonly (readonly [what: string, lie: Lie])[] = [
  ...LIES,
  ...NO_VERDICT.map(([what, answer]): readonly [string, Lie] => [what, () => answer]),
];

describe('a hostile facilitator over a real chain', () => {
  let stage: Stage;
  let facilitator: HostileFacilitator;
  let rail: PaymentRail & { close(): Promise<void> };
  let account: PrivateKeyAccount;
  let foreign: string;

  before(async () => {
    stage = await openStage();
    facilitator = await startHostileFacilitator(stage.terms.network);
    const deadlines = { verifyMs: 400, settleMs: 400, confirmMs: 30 };
    rail = remoteRail([facilitator.url], { network: stage.terms.network, chain: stage.chain, deadlines });
    // Enough funds for every payment below.
    ({ account } = await stage.actors.buyer(10n ** 12n));
    foreign = await stage.actors.submit(await genuineProof(account, stage.terms));
  });
  after(async () => {
    await rail.close();
    await facilitator.stop();
    await stage.close();
  });

  const bring = async (state: ChainState, proof: Proof): Promise<string> => {
    if (state === 'paid') return stage.actors.submit(proof);
    if (state === 'under way') return stage.actors.broadcast(proof);
    if (state === 'cancelled') await stage.actors.cancel(account, proof);
    return INVENTED_TRANSACTION;
  };
  const answering = (answer: ScriptedAnswer): void => {
    facilitator.script({ settle: () => answer, verify: () => answer });
  };

  for (const [what, lie] of ANSWERS)
    it(`that answers "${what}" decides nothing: the chain does`, async () => {
      for (const state of CHAIN_STATES) {
        const proof = await genuineProof(account, stage.terms);
        const transaction = await bring(state, proof);
        answering(lie({ network: stage.terms.network, payer: account.address, transaction, foreign }));
        const asked = facilitator.calls.length;
        const settlement = await rail.settle(proof, stage.offer, noWriteAhead);
        assert.equal(facilitator.calls.length, asked + 1, `${state}: /settle is asked once`);
        assert.deepEqual(provenBy(settlement), expected(state, transaction), state);
        if (state !== 'under way') continue;
        await stage.actors.mine();
        const reading = await rail.reconcile(proof, stage.offer, {
          ...{ sentBefore: true, transaction: settlement.transaction },
        });
        assert.partialDeepStrictEqual(reading, { kind: 'settled', evidence: 'logs', transaction }, 'mined afterwards');
      }
    });

  for (const [what, lie] of ANSWERS)
    it(`that answers /verify with "${what}" cannot make a payment that was made look unpaid`, async () => {
      const proof = await genuineProof(account, stage.terms);
      const transaction = await stage.actors.submit(proof);
      const answer = lie({ network: stage.terms.network, payer: account.address, transaction, foreign });
      answering(answer.kind === 'json' ? { ...answer, body: asVerdict(answer.body) } : answer);
      const verdict = await rail.verify(proof, stage.offer);
      assert.ok(verdict.kind !== 'refused' || verdict.nonceSpent, JSON.stringify(verdict));
    });

  it('cannot keep an authorization open that no block can take any more', async () => {
    const validBefore = nowSeconds() + 60;
    const proof = await genuineProof(account, stage.terms, { validBefore: String(validBefore) });
    const snapshot = await stage.local.request('evm_snapshot', []);
    await stage.local.request('evm_setNextBlockTimestamp', [validBefore]);
    await stage.local.request('evm_mine', []);
    for (const [, lie] of LIES) {
      const at = { network: stage.terms.network, payer: account.address, transaction: INVENTED_TRANSACTION, foreign };
      answering(lie(at));
      const settlement = await rail.settle(proof, stage.offer, noWriteAhead);
      assert.equal(settlement.kind === 'refused' && settlement.evidence, 'expired');
    }
    await stage.local.request('evm_revert', [snapshot]);
  });
});

/** The kind, and what proves it; causes and unproven hashes are for the log. */
function provenBy(settlement: Settlement): object {
  const { kind, transaction } = settlement;
  return kind === 'uncertain' || kind === 'withdrawn'
    ? { kind }
    : { kind, evidence: settlement.evidence, ...(kind === 'settled' ? { transaction } : {}) };
}

function expected(state: ChainState, transaction: string): object {
  switch (state) {
    case 'paid':
      return { kind: 'settled', evidence: 'logs', transaction };
    case 'cancelled':
      return { kind: 'refused', evidence: 'elsewhere' };
    default:
      return { kind: 'uncertain' };
  }
}

/** The same answer in the format of `/verify`. */
function asVerdict(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { success: isValid, errorReason: invalidReason, ...rest } = body as Readonly<Record<string, unknown>>;
  return { isValid, invalidReason, ...rest };
}
