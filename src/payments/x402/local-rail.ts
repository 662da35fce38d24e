import { transferCall } from './calldata.ts';
import type { Chain } from './chain.ts';
import { confirmPayment } from './confirm.ts';
import { evidenceQuery, paysOffer, readingOf } from './evidence-query.ts';
import { createFailedPayers } from './failed-payers.ts';
import type { PaymentRail, Proof, RailVerdict, Settlement } from './rail.ts';
import { createRelayer, type Relayer } from './relayer.ts';
import type { Rpc } from './rpc.ts';
import type { X402Config } from './settings.ts';
import { type Simulation, simulate } from './simulation.ts';
import type { PaymentRequirements } from './wire.ts';

/** Longest time from the call to an outcome, milliseconds (CONTRACT 4.2). */
export const LOCAL_SETTLE_DEADLINE_MS = 60_000;
/** Gas limits of a transfer; a payer that is a contract runs code of its own, within a cap. */
const ACCOUNT_GAS = 160_000n;
const CONTRACT_GAS = 400_000n;
/** Below this many transfers at the present price the relayer counts as empty. */
const LOW_GAS_TRANSFERS = 10n;

export interface LocalRailDeps {
  readonly rpc: Rpc;
  readonly chain: Chain;
  readonly terms: Pick<X402Config, 'chainId' | 'asset'>;
  /** 32 bytes 0x-hex; pays gas only. */
  readonly privateKey: string;
  /** Shorter in tests of deadlines. */
  readonly settleDeadlineMs?: number;
  /** Milliseconds of a monotonic clock, for the pause of payers whose transfer failed. */
  readonly now?: () => number;
}

/** The rail that settles by itself: a transaction of its own for each payment, its outcome read from the logs. */
export async function createLocalRail(deps: LocalRailDeps): Promise<PaymentRail> {
  const { rpc, chain, terms, privateKey, settleDeadlineMs = LOCAL_SETTLE_DEADLINE_MS } = deps;
  const relayer = await createRelayer(rpc, terms.chainId, privateKey);
  const failedPayers = createFailedPayers(deps.now);

  const verify = async (proof: Proof, offer: PaymentRequirements): Promise<RailVerdict> => {
    if (!paysOffer(proof, offer)) return { kind: 'refused', reason: 'invalid_payment_requirements', nonceSpent: false };
    if (failedPayers.has(payerOf(proof)))
      return { kind: 'unavailable', cause: 'a transfer of this payer has just failed' };
    return simulate(rpc, { ...transferOf(proof), asset: terms.asset, relayer: relayer.address });
  };

  return {
    facilitator: 'local',
    seesChain: true,
    verify,

    async settle(proof, offer, writeAhead, history = { sentBefore: false }) {
      const ends = performance.now() + settleDeadlineMs;
      if (!paysOffer(proof, offer)) return { kind: 'uncertain', cause: 'the authorization does not pay this offer' };
      // The code of such a payer may say yes when it is asked and no in a block, for gas that we pay: it is sent once.
      if (history.sentBefore && proof.signedBy === 'contract')
        return confirmPayment(chain, evidenceQuery(proof, offer), 0, 'a contract that pays is not sent a second time');
      const verdict = await verify(proof, offer);
      if (verdict.kind !== 'valid') return unsimulated(verdict, history.sentBefore, chain, proof, offer);
      const { data, gas } = transferOf(proof);
      const sending = await relayer.send({ to: terms.asset, data, gas }, writeAhead);
      if (sending.kind === 'unsent') return { kind: 'uncertain', cause: `nothing was sent: ${textOf(sending.cause)}` };
      const cause = sending.kind === 'sent' ? 'not mined in time' : `the broadcast failed: ${textOf(sending.cause)}`;
      // A broadcast that failed may have arrived all the same: one look, and the hash is kept.
      const waitMs = sending.kind === 'sent' ? ends - performance.now() : 0;
      const outcome = await confirmPayment(chain, evidenceQuery(proof, offer, sending.hash), waitMs, cause);
      if (failedByPayer(outcome)) failedPayers.add(payerOf(proof));
      return outcome;
    },

    reconcile: (proof, offer, knownTransaction) => readingOf(chain, evidenceQuery(proof, offer, knownTransaction)),

    async check() {
      try {
        const cause = await outOfGas(relayer, chain);
        return cause === undefined ? undefined : { found: 'unreachable', cause };
      } catch (error) {
        return { found: 'unreachable', cause: textOf(error) };
      }
    },
  };
}

/** Not one that only came too late for its block. */
function failedByPayer(outcome: Settlement): boolean {
  return outcome.kind === 'refused'
    ? outcome.evidence === 'elsewhere'
    : outcome.kind === 'uncertain' && outcome.failed === true;
}

function payerOf({ payload }: Proof): string {
  return payload.payload.authorization.from;
}

/** The transfer with its gas limit. */
function transferOf({ payload, signedBy }: Proof): Pick<Simulation, 'data' | 'authorization' | 'gas'> {
  const { authorization, signature } = payload.payload;
  const data = transferCall(authorization, signature, signedBy);
  return { data, authorization, gas: signedBy === 'account' ? ACCOUNT_GAS : CONTRACT_GAS };
}

/**
 * The simulation said no before anything was sent, so this attempt cannot have moved money; an earlier one can. A spent nonce may
 * even mean that we were paid. In both cases only the chain makes a refusal.
 */
async function unsimulated(
  verdict: Exclude<RailVerdict, { kind: 'valid' }>,
  sentBefore: boolean,
  chain: Chain,
  proof: Proof,
  offer: PaymentRequirements,
): Promise<Settlement> {
  if (verdict.kind === 'unavailable') return { kind: 'uncertain', cause: verdict.cause };
  if (!sentBefore && !verdict.nonceSpent) return { kind: 'refused', reason: verdict.reason, evidence: 'unsent' };
  return confirmPayment(chain, evidenceQuery(proof, offer), 0, `the simulation said ${verdict.reason}`);
}

async function outOfGas(relayer: Relayer, chain: Chain): Promise<string | undefined> {
  const [balance, head] = await Promise.all([relayer.balance(), chain.head()]);
  return balance > LOW_GAS_TRANSFERS * ACCOUNT_GAS * head.baseFee ? undefined : 'the relayer is out of gas';
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
