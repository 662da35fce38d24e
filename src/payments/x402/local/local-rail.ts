/** The rail that settles by itself, through its lane; outcomes are read from the logs. */

import { RecentMap } from '../../../time/recent-map.ts';
import type { RailVerdict, Reading, Settlement, SettlementHistory } from '../../rail.ts';
import { type Chain, confirmPayment, evidenceQuery, paysOffer, readingOf } from '../chain/chain.ts';
import { clientOver, type Rpc } from '../chain/node.ts';
import { lowerHex, markOf } from '../evm/eip3009.ts';
import type { X402Config } from '../wire/settings.ts';
import type { PaymentRail, PaymentRequirements, Proof } from '../wire/types.ts';
import { BATCH, createLane, type Refusing, SENT_AT_ONCE, textOf } from './lane.ts';
import {
  createRelayer,
  LOW_GAS_TRANSFERS,
  type RelayerFunds,
  transfersPaidBy,
  watchFees,
  watchFunds,
} from './relayer.ts';
import { createSimulation, transferOf } from './transfer.ts';
import type { LanePayment, Question } from './under-way.ts';

/** Longest time from the call to an outcome, milliseconds (contract 4.2). */
const LOCAL_SETTLE_DEADLINE_MS = 60_000;
const UNFUNDED = 'the relayer cannot pay the gas';
/** How long nothing is sent for a payer after a transfer failed in a block, milliseconds. */
export const FAILED_PAYER_PAUSE_MS = 30_000;
/** Most remembered payers; the oldest failure is forgotten first. */
const FAILED_PAYERS = 1_000;
/** Most simulations that are remembered for a settlement; the oldest is forgotten first. */
const REMEMBERED_SIMULATIONS = 1_000;

interface LocalRailDeps {
  readonly rpc: Rpc;
  readonly chain: Chain;
  readonly terms: Pick<X402Config, 'chainId' | 'asset'> & Partial<Pick<X402Config, 'confirmations'>>;
  /** 32 bytes 0x-hex; pays gas only. */
  readonly privateKey: string;
  /** Shorter in tests of deadlines. */
  readonly settleDeadlineMs?: number;
  /** Milliseconds of a monotonic clock, for the pause of payers whose transfer failed. */
  readonly now?: () => number;
}

const monotonic = (): number => performance.now();

export async function createLocalRail(deps: LocalRailDeps): Promise<PaymentRail> {
  const { rpc, chain, terms, privateKey, settleDeadlineMs = LOCAL_SETTLE_DEADLINE_MS, now = monotonic } = deps;
  const { asset, chainId, confirmations = 1 } = terms;
  const client = clientOver(rpc.call);
  const fees = watchFees({ client, head: () => chain.head() });
  const relayer = await createRelayer(rpc, chainId, privateKey, fees);
  /**
   * When the transfer of a payer last failed in a block although its simulation passed. That costs
   * the relayer gas, and the payer caused it: balance, cancellation or wallet code changed in
   * between. So the payer waits before the next attempt.
   */
  const failedAt = new RecentMap<number>(FAILED_PAYERS);
  const isPaused = ({ payload }: Proof): boolean => {
    const at = failedAt.use(payload.payload.authorization.from.toLowerCase());
    return at !== undefined && now() - at < FAILED_PAYER_PAUSE_MS;
  };
  const passedAt = new RecentMap<number>(REMEMBERED_SIMULATIONS);
  let known: RelayerFunds | undefined;

  const decide = async (payment: LanePayment, { transaction, inBatch, waitMs, cause }: Question) => {
    const { proof, offer } = payment.order;
    const query = { ...evidenceQuery(proof, offer, transaction), inBatch };
    const outcome = await confirmPayment(chain, query, waitMs, cause);
    if (failedByPayer(outcome)) failedAt.add(payment.payer, now());
    return caused(outcome, payment.order, payment.signed);
  };
  /** The sender of a transaction and its mark for the payment; undefined: the node lacks it. */
  const sentAs = async (transaction: string, { payload }: Proof) => {
    const sent = await client.request({ method: 'eth_getTransactionByHash', params: [lowerHex(transaction)] });
    if (sent === null) return undefined;
    return { isOwn: sent.from === relayer.address, mark: markOf(sent.input, payload.payload.authorization) };
  };
  /**
   * Decides who caused a transaction that the record does not name: the mark shows which record it
   * was made for, whichever account sent it. It has one mark for an authorization. Never rejects.
   */
  const caused = async <Shown extends Settlement | Reading>(
    shown: Shown,
    { proof, history }: Pick<LanePayment['order'], 'proof' | 'history'>,
    signed?: ReadonlySet<string>,
  ): Promise<Shown> => {
    if (shown.kind !== 'settled' || shown.by === undefined) return shown;
    const { by: _by, ...ours } = shown;
    if (signed?.has(shown.transaction)) return ours as Shown;
    const sent = await sentAs(shown.transaction, proof).catch(() => undefined);
    if (sent?.mark !== undefined && sent.mark === history.mark) return ours as Shown;
    const mayBeOurs = sent === undefined || (sent.isOwn && (sent.mark === undefined || history.mark === undefined));
    return { ...shown, by: mayBeOurs ? 'unknown' : 'others' };
  };
  const refuse = async ({ order: { proof, offer }, history }: LanePayment, verdict: Refusing): Promise<Settlement> =>
    caused(await afterFailedSimulation(verdict, history, chain, proof, offer), { proof, history });
  const funds = watchFunds(() => relayer.funds());
  const simulation = createSimulation(client, asset, relayer.address);
  const lane = createLane({
    ...{ rpc, asset, confirmations, relayer, funds, simulation, refuse, decide },
    head: () => chain.head(),
    looked({ head }) {
      if (head !== undefined) fees.saw(head);
    },
    now: monotonic,
  });
  const simulateSoon = together(simulation.simulate, { atOnce: SENT_AT_ONCE, most: BATCH });

  const verify = async (proof: Proof, offer: PaymentRequirements): Promise<RailVerdict> => {
    if (!paysOffer(proof, offer)) return { kind: 'refused', reason: 'invalid_payment_requirements', nonceSpent: false };
    if (isPaused(proof)) return PAUSED;
    const transfer = transferOf(proof);
    const began = monotonic();
    const [joint, isShort] = await Promise.all([simulateSoon(transfer), funds.isShort(transfer.gas)]);
    // The other proof of the payer may be settled later, or not at all.
    const verdict = joint.kind === 'behind' ? ({ kind: 'valid' } as const) : joint;
    if (verdict.kind === 'valid') passedAt.add(transfer.data, began);
    // A refusal comes first: a worthless proof need not wait for gas.
    return verdict.kind === 'valid' && isShort ? { kind: 'unfunded', cause: UNFUNDED } : verdict;
  };

  return {
    facilitator: 'local',
    seesChain: () => true,
    verify,

    async settle(proof, offer, writeAhead, history = { sentBefore: false }) {
      const endsAt = monotonic() + settleDeadlineMs;
      if (!paysOffer(proof, offer)) return { kind: 'uncertain', cause: 'the authorization does not pay this offer' };
      // A contract may agree in a simulation and refuse in a block: its payment is sent once.
      if (history.sentBefore && proof.signedBy === 'contract') {
        const query = evidenceQuery(proof, offer, history.transaction);
        const shown = await confirmPayment(chain, query, 0, 'a contract that pays is not sent a second time');
        return caused(shown, { proof, history });
      }
      if (isPaused(proof)) return afterFailedSimulation(PAUSED, history, chain, proof, offer);
      const transfer = transferOf(proof);
      const simulatedAt = passedAt.use(transfer.data);
      return lane.settle({ proof, offer, transfer, history, writeAhead, endsAt, simulatedAt });
    },

    async reconcile(proof, offer, history = { sentBefore: false }) {
      const shown = await readingOf(chain, evidenceQuery(proof, offer, history.transaction));
      return caused(shown, { proof, history });
    },

    async markOf(transaction, proof) {
      const sent = await sentAs(transaction, proof);
      return sent?.isOwn === true ? sent.mark : undefined;
    },

    async check() {
      try {
        [known] = await Promise.all([funds.look(), chain.head()]);
        // Transactions that wait may still get a block, and new payments wait behind them.
        const cause = lowOnGas(known) ?? lane.underWay.heldUp();
        return cause === undefined ? undefined : { found: 'degraded', cause };
      } catch (error) {
        return { found: 'unreachable', cause: textOf(error) };
      }
    },
    transfersLeft: () => (known === undefined ? undefined : transfersPaidBy(known)),
  };
}

const PAUSED = { kind: 'unavailable', cause: 'a transfer of this payer has just failed' } as const;

/**
 * The simulation failed before anything was sent, so this attempt cannot have moved money; an
 * earlier one can. A spent nonce may even mean that we were paid. In both cases only the chain
 * makes a refusal.
 */
export async function afterFailedSimulation(
  verdict: Refusing,
  { sentBefore, withdrawnBefore = false, transaction }: SettlementHistory,
  chain: Chain,
  proof: Proof,
  offer: PaymentRequirements,
): Promise<Settlement> {
  const { kind } = verdict;
  if (kind === 'unavailable' || kind === 'unfunded') {
    const { cause } = verdict;
    if (sentBefore) return { kind: 'uncertain', cause };
    return { kind: 'withdrawn', reason: kind === 'unfunded' ? 'relayer_unfunded' : 'provider_unavailable', cause };
  }
  if (!sentBefore && !withdrawnBefore && !verdict.nonceSpent)
    return { kind: 'refused', reason: verdict.reason, evidence: 'unsent' };
  const query = evidenceQuery(proof, offer, transaction);
  const shown = await confirmPayment(chain, query, 0, `the simulation failed with ${verdict.reason}`);
  if (sentBefore || withdrawnBefore || shown.kind !== 'uncertain') return shown;
  // This store has signed nothing; the next attempt reads first whether another sender paid.
  return { kind: 'withdrawn', reason: 'provider_unavailable', cause: shown.cause };
}

/** Excludes transfers that were only too late for their block. */
function failedByPayer(outcome: Settlement): boolean {
  return outcome.kind === 'refused'
    ? outcome.evidence === 'elsewhere'
    : outcome.kind === 'uncertain' && outcome.failed === true;
}

/** Without gas the rail is `degraded`: calls that need no gas are still served. */
function lowOnGas(funds: RelayerFunds): string | undefined {
  const transfers = transfersPaidBy(funds);
  if (transfers >= LOW_GAS_TRANSFERS) return undefined;
  return transfers === 0 ? 'the relayer is out of gas' : `the relayer has gas for ${transfers} more transfers`;
}

interface Rounds {
  /** Rounds that run at a time. */
  readonly atOnce: number;
  /** Most items of one round. */
  readonly most: number;
}

/**
 * Takes waiting items in rounds of at most `most`: at once while fewer than `atOnce` rounds run,
 * else when one ends. The results are in the order of the items, and some may come after the round;
 * an error of a round is that of each of its items.
 */
export function together<Item, Result>(
  work: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>,
  { atOnce, most }: Rounds,
): (item: Item) => Promise<Result> {
  const waiting: { readonly item: Item; readonly end: PromiseWithResolvers<Result> }[] = [];
  let running = 0;
  const round = async (): Promise<void> => {
    const taken = waiting.splice(0, most);
    running += 1;
    try {
      const results = await work(taken.map(({ item }) => item));
      for (const [at, { end }] of taken.entries()) end.resolve(results[at] as Result | Promise<Result>);
    } catch (error) {
      for (const { end } of taken) end.reject(error);
    }
    running -= 1;
    if (waiting.length > 0) void round();
  };
  return function workTogether(item) {
    const end = Promise.withResolvers<Result>();
    waiting.push({ item, end });
    if (running < atOnce) void round();
    return end.promise;
  };
}
