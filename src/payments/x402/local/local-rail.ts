/** The rail that settles by itself: one transaction per payment, its outcome read from the logs. */

import type { Client } from 'viem';
import { getBlock, getTransactionCount } from 'viem/actions';
import type { RailFault, RailVerdict, Settlement, SettlementHistory, SignedTransaction } from '../../rail.ts';
import type { Chain } from '../chain/chain.ts';
import { askAsset, clientOver } from '../chain/client.ts';
import { confirmPayment, evidenceQuery, paysOffer, readingOf } from '../chain/payment-reading.ts';
import type { Rpc } from '../chain/rpc.ts';
import { lowerHex } from '../evm/abi-words.ts';
import { marked, markOf, transferCall } from '../evm/calldata.ts';
import type { X402Config } from '../wire/settings.ts';
import type { PaymentRail, PaymentRequirements, Proof } from '../wire/types.ts';
import { createRelayer, type Sending } from './relayer.ts';
import { type RelayerFunds, watchFunds } from './relayer-funds.ts';
import { type Simulation, simulate } from './simulation.ts';

/** Longest time from the call to an outcome, milliseconds (contract 4.2). */
const LOCAL_SETTLE_DEADLINE_MS = 60_000;
/** Gas limits of a transfer; a payer that is a contract runs its own code, within a cap. */
const ACCOUNT_GAS = 160_000n;
const CONTRACT_GAS = 400_000n;
/** Below this many transfers at the present price, readiness warns. */
const LOW_GAS_TRANSFERS = 10;
/** Most numbers that one settlement loses to transactions of other replicas. */
const NUMBERS_LOST = 3;
const UNFUNDED = 'the relayer cannot pay the gas';
/** How long nothing is sent for a payer after a transfer failed in a block, milliseconds. */
export const FAILED_PAYER_PAUSE_MS = 30_000;
/** Most remembered payers; the oldest failure is forgotten first. */
export const FAILED_PAYERS = 1_000;

interface LocalRailDeps {
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

type WriteAhead = (transaction: SignedTransaction) => Promise<void>;

export async function createLocalRail(deps: LocalRailDeps): Promise<PaymentRail> {
  const { rpc, chain, terms, privateKey, settleDeadlineMs = LOCAL_SETTLE_DEADLINE_MS } = deps;
  const client = clientOver(rpc.call);
  const relayer = await createRelayer(rpc, terms.chainId, privateKey);
  const failedPayers = createFailedPayers(deps.now);

  const funds = watchFunds(() => relayer.funds());
  let known: RelayerFunds | undefined;

  const verify = async (proof: Proof, offer: PaymentRequirements): Promise<RailVerdict> => {
    if (!paysOffer(proof, offer)) return { kind: 'refused', reason: 'invalid_payment_requirements', nonceSpent: false };
    if (failedPayers.has(payerOf(proof)))
      return { kind: 'unavailable', cause: 'a transfer of this payer has just failed' };
    const transfer = transferOf(proof);
    const [verdict, isShort] = await Promise.all([
      simulate(client, { ...transfer, asset: terms.asset, relayer: relayer.address }),
      funds.isShort(transfer.gas),
    ]);
    // A refusal comes first: a worthless proof need not wait for gas.
    return verdict.kind === 'valid' && isShort ? { kind: 'unfunded', cause: UNFUNDED } : verdict;
  };
  /** Signs and sends, again with the next number where another transaction took this one. */
  const send = async (proof: Proof, mark: string | undefined, writeAhead: WriteAhead): Promise<Sending> => {
    const { gas, ...transfer } = transferOf(proof);
    const data = marked(transfer.data, mark);
    const { from, nonce } = proof.payload.payload.authorization;
    for (let lost = 1; ; lost += 1) {
      const sending = await relayer.send({ to: terms.asset, data, gas }, writeAhead);
      if (sending.kind !== 'excluded') return sending;
      if (sending.exclusion !== 'outrun') {
        funds.refused();
        return sending;
      }
      const { number, hash, cause } = sending;
      const question = { account: relayer.address, number, asset: terms.asset, from, nonce };
      // These very bytes may have taken the number: then nothing may be concluded or sent.
      if (!(await isOutrun(client, question).catch(() => false))) return { kind: 'unclear', hash, cause };
      if (lost >= NUMBERS_LOST) return sending;
    }
  };

  return {
    facilitator: 'local',
    seesChain: true,
    verify,

    async settle(proof, offer, writeAhead, history = { sentBefore: false }) {
      const ends = performance.now() + settleDeadlineMs;
      if (!paysOffer(proof, offer)) return { kind: 'uncertain', cause: 'the authorization does not pay this offer' };
      // Such a payer's code may answer yes when asked and no in a block: it is sent once.
      if (history.sentBefore && proof.signedBy === 'contract')
        return confirmPayment(chain, evidenceQuery(proof, offer), 0, 'a contract that pays is not sent a second time');
      const verdict = await verify(proof, offer);
      if (verdict.kind !== 'valid') return afterFailedSimulation(verdict, history, chain, proof, offer);
      const sending = await send(proof, history.mark, writeAhead);
      if (sending.kind === 'unsent') return { kind: 'uncertain', cause: `nothing was sent: ${textOf(sending.cause)}` };
      const { hash: transaction } = sending;
      if (sending.kind === 'excluded' && !history.sentBefore)
        return { kind: 'withdrawn', cause: `no node took it: ${textOf(sending.cause)}`, transaction };
      const cause = sending.kind === 'sent' ? 'not mined in time' : `the broadcast failed: ${textOf(sending.cause)}`;
      // A failed broadcast may have arrived all the same: one reading, and the hash is kept.
      const waitMs = sending.kind === 'sent' ? ends - performance.now() : 0;
      const outcome = await confirmPayment(chain, evidenceQuery(proof, offer, transaction), waitMs, cause);
      if (failedByPayer(outcome)) failedPayers.add(payerOf(proof));
      return outcome;
    },

    reconcile: (proof, offer, knownTransaction) => readingOf(chain, evidenceQuery(proof, offer, knownTransaction)),

    async markOf(transaction) {
      const sent = await client.request({ method: 'eth_getTransactionByHash', params: [lowerHex(transaction)] });
      return sent?.from === relayer.address.toLowerCase() ? markOf(sent.input) : undefined;
    },

    async check() {
      try {
        [known] = await Promise.all([funds.look(), chain.head()]);
        return lowOnGas(known);
      } catch (error) {
        return { found: 'unreachable', cause: textOf(error) };
      }
    },
    transfersLeft: () => (known === undefined ? undefined : transfersPaidBy(known)),
  };
}

/**
 * The simulation failed before anything was sent, so this attempt cannot have moved money; an
 * earlier one can. A spent nonce may even mean that we were paid. In both cases only the chain
 * makes a refusal.
 */
async function afterFailedSimulation(
  verdict: Exclude<RailVerdict, { kind: 'valid' }>,
  { sentBefore, withdrawnBefore = false }: SettlementHistory,
  chain: Chain,
  proof: Proof,
  offer: PaymentRequirements,
): Promise<Settlement> {
  const { kind } = verdict;
  if (kind === 'unfunded' && !sentBefore) return { kind: 'withdrawn', cause: verdict.cause };
  if (kind === 'unavailable' || kind === 'unfunded') return { kind: 'uncertain', cause: verdict.cause };
  if (!sentBefore && !withdrawnBefore && !verdict.nonceSpent)
    return { kind: 'refused', reason: verdict.reason, evidence: 'unsent' };
  return confirmPayment(chain, evidenceQuery(proof, offer), 0, `the simulation failed with ${verdict.reason}`);
}

/** Excludes transfers that were only too late for their block. */
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

/** A transaction number of an account, and the authorization that it was meant for. */
interface OutrunQuestion {
  readonly account: string;
  readonly number: number;
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
}

/**
 * Whether another transaction took the number: it is used up in a block in which the authorization
 * is still unspent. Both are read at one block hash, because behind a balancer two answers may come
 * from two nodes.
 * @throws when the node does not answer, or knows no reading by hash
 */
async function isOutrun(client: Client, { account, number, asset, from, nonce }: OutrunQuestion): Promise<boolean> {
  const { hash: blockHash } = await getBlock(client);
  const [count, state] = await Promise.all([
    getTransactionCount(client, { address: lowerHex(account), blockHash }),
    askAsset(client, asset, 'authorizationState', [lowerHex(from), lowerHex(nonce)], { blockHash }),
  ]);
  return count > number && state === 0n;
}

/**
 * Payers whose last transfer failed in a block although its simulation passed. That costs the
 * relayer gas, and the payer caused it: balance, cancellation or wallet code changed in between. So
 * the payer waits before the next attempt.
 */
interface FailedPayers {
  add(payer: string): void;
  has(payer: string): boolean;
}

/** @param now Milliseconds of a monotonic clock. */
export function createFailedPayers(now: () => number = () => performance.now()): FailedPayers {
  const failedAt = new Map<string, number>();
  return {
    add(payer) {
      const key = payer.toLowerCase();
      // Deleted first, so that the map stays in the order of time.
      failedAt.delete(key);
      failedAt.set(key, now());
      const [oldest] = failedAt.keys();
      if (failedAt.size > FAILED_PAYERS && oldest !== undefined) failedAt.delete(oldest);
    },
    has(payer) {
      const at = failedAt.get(payer.toLowerCase());
      return at !== undefined && now() - at < FAILED_PAYER_PAUSE_MS;
    },
  };
}

/** How many transfers of accounts the relayer can pay at the highest price now. */
function transfersPaidBy({ balance, maxFeePerGas }: RelayerFunds): number {
  return maxFeePerGas === 0n ? Number.MAX_SAFE_INTEGER : Number(balance / (ACCOUNT_GAS * maxFeePerGas));
}

/** Without gas the rail is `degraded`: calls that need no gas are still served. */
function lowOnGas(funds: RelayerFunds): RailFault | undefined {
  const transfers = transfersPaidBy(funds);
  if (transfers >= LOW_GAS_TRANSFERS) return undefined;
  const cause = transfers === 0 ? 'the relayer is out of gas' : `the relayer has gas for ${transfers} more transfers`;
  return { found: 'degraded', cause };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
