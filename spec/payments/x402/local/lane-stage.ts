import { setImmediate as turn } from 'node:timers/promises';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import type { Settlement, SettlementHistory, SignedTransaction } from '../../../../src/payments/rail.ts';
import { createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { clientOver, readHead } from '../../../../src/payments/x402/chain/client.ts';
import { confirmPayment, evidenceQuery } from '../../../../src/payments/x402/chain/payment-reading.ts';
import type { Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import type { Fees } from '../../../../src/payments/x402/evm/transaction.ts';
import { watchBlocks } from '../../../../src/payments/x402/local/block-watch.ts';
import { createJointSimulation } from '../../../../src/payments/x402/local/joint-simulation.ts';
import { createLane, isOutrun } from '../../../../src/payments/x402/local/lane.ts';
import type { LanePayment } from '../../../../src/payments/x402/local/lane-payment.ts';
import { afterFailedSimulation, payersWithCode } from '../../../../src/payments/x402/local/local-rail.ts';
import { createRelayer, type Relayer } from '../../../../src/payments/x402/local/relayer.ts';
import { watchFunds } from '../../../../src/payments/x402/local/relayer-funds.ts';
import { transferOf } from '../../../../src/payments/x402/local/transfer.ts';
import { createUnderWay, type Question } from '../../../../src/payments/x402/local/under-way.ts';
import type { Proof } from '../../../../src/payments/x402/wire/types.ts';
import { authorize, offerFor, PRICE_UNITS, termsFor } from '../signing.ts';
import { ASSET, PoolNode } from './pool-node.ts';

const DEADLINE_MS = 60_000;
const KEY = generatePrivateKey();
const FEES: Fees = { maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1_000n };
/** No test needs more turns of the event loop until something happens. */
const MOST_TURNS = 2_000;

/** A wrong part of the lane; the rest is the real one. */
export interface Mistake {
  readonly rpc?: (rpc: Rpc, node: PoolNode) => Rpc;
  readonly relayer?: (relayer: Relayer, node: PoolNode) => Relayer;
  readonly reverted?: (payments: readonly LanePayment[]) => boolean;
}

interface Setting extends Mistake {
  /** Blocks that hold an outcome. */
  readonly confirmations?: number;
}

/** One order in the lane. */
export interface Ordered {
  readonly proof: Proof;
  readonly payer: string;
  /** What was written ahead, in order. */
  readonly written: SignedTransaction[];
  /** The number of transactions that the node had taken at each of those writes. */
  readonly takenBefore: number[];
  readonly outcome: Promise<Settlement>;
  /** The same, for an outcome that has to come without another look. @throws when it does not */
  ended(): Promise<Settlement>;
}

interface Order {
  readonly payer?: string;
  readonly signedBy?: Proof['signedBy'];
  readonly history?: SettlementHistory;
  /** Its write-aheads fail from this one on, counted from 0. */
  readonly losesFrom?: number;
  /** Milliseconds since its transfer passed a simulation. */
  readonly verifiedMsAgo?: number;
}

const terms = { ...termsFor(), asset: ASSET };
export const OFFER = offerFor(terms);

/** The lane over a node in memory. Blocks and looks come when the test says so. */
export async function openLaneStage(setting: Setting = {}) {
  const { rpc: wrong, relayer: wrongRelayer, reverted, confirmations = 1 } = setting;
  const node = new PoolNode();
  const plain: Rpc = { call: (method, params) => node.call(method, params), close: async () => undefined };
  const rpc = wrong?.(plain, node) ?? plain;
  const client = clientOver(rpc.call);
  const chain = createChain(rpc);
  const clock = { now: 0 };
  const now = (): number => clock.now;
  let fees = FEES;
  const right = await createRelayer(rpc, terms.chainId, KEY, { current: async () => fees });
  const relayer = wrongRelayer?.(right, node) ?? right;
  const funds = watchFunds(() => relayer.funds(), now);
  const canBatch = async (): Promise<boolean> => node.hasMulticall;
  const decide = ({ order }: LanePayment, { transaction, inBatch, waitMs, cause }: Question): Promise<Settlement> =>
    confirmPayment(chain, { ...evidenceQuery(order.proof, order.offer, transaction), inBatch }, waitMs, cause);
  const underWay = createUnderWay({
    relayer,
    asset: ASSET,
    confirmations,
    decide,
    reverted: (payments) => (reverted?.(payments) === true ? undefined : lane.reverted(payments)),
    now,
  });
  let onLook: () => void = () => undefined;
  let endPause: (() => void) | undefined;
  const blocks = watchBlocks({
    client,
    call: rpc.call,
    head: () => readHead(client),
    awaited: () => underWay.hashes(),
    looked(shown) {
      underWay.looked(shown);
      lane.looked();
      onLook();
    },
    now,
    pause: {
      begin: () =>
        new Promise((resolve) => {
          endPause = resolve;
        }),
      end: () => undefined,
    },
  });
  const lane = createLane({
    relayer,
    asset: ASSET,
    simulate: createJointSimulation({ client, asset: ASSET, relayer: relayer.address, canBatch }),
    canBatch,
    payersWithCode: (payers) => payersWithCode(client, payers),
    isShort: (gas) => funds.isShort(gas),
    readFunds: async () => void (await funds.look()),
    refusedForFunds: () => funds.refused(),
    isOutrun: (question) => isOutrun(client, relayer.address, ASSET, question),
    refuse: ({ order: { proof, offer }, history }, verdict) =>
      afterFailedSimulation(verdict, history, chain, proof, offer),
    decide,
    underWay,
    sent: () => blocks.begin(),
    now,
  });

  const order = ({
    payer = freshPayer(),
    signedBy = 'account',
    history,
    losesFrom = Number.POSITIVE_INFINITY,
    verifiedMsAgo = 0,
  }: Order = {}): Ordered => {
    node.balances.set(payer, node.balances.get(payer) ?? PRICE_UNITS);
    const authorization = authorize(payer, OFFER);
    const signature = `0x${'11'.repeat(64)}1b`;
    const payload = { x402Version: 2, accepted: OFFER, payload: { signature, authorization } } as const;
    const proof: Proof = { payId: authorization.nonce, payload, signedBy };
    const written: SignedTransaction[] = [];
    const takenBefore: number[] = [];
    const writeAhead = async (signed: SignedTransaction): Promise<void> => {
      written.push(signed);
      takenBefore.push(node.taken.filter(({ hash }) => hash === signed.hash).length);
      if (written.length > losesFrom) throw new Error('fenced');
    };
    const outcome = lane.settle({
      proof,
      offer: OFFER,
      transfer: transferOf(proof),
      history: history ?? { sentBefore: false },
      writeAhead,
      endsAt: now() + DEADLINE_MS,
      simulatedAt: now() - verifiedMsAgo,
    });
    let shown: Settlement | undefined;
    void outcome.then((settlement) => {
      shown = settlement;
    });
    const ended = async (): Promise<Settlement> => {
      await until(() => shown !== undefined, 'a payment in a block has an outcome, it has no outcome');
      return outcome;
    };
    return { proof, payer, written, takenBefore, outcome, ended };
  };
  /** The gateway looks for blocks, if it waits for any. */
  const look = async (): Promise<void> => {
    const shown = new Promise<void>((resolve) => {
      onLook = resolve;
    });
    const due = endPause;
    if (due === undefined) return;
    endPause = undefined;
    due();
    await shown;
  };
  return {
    node,
    clock,
    order,
    look,
    /** One block with everything in the pool, which the gateway sees. */
    async mineAll(): Promise<void> {
      node.mine();
      await look();
    },
    /** Resolves when so many transactions were offered to the node. */
    offered: (count: number) => until(() => node.offered.length >= count, `${count} transactions are offered`),
    underWay,
    /** Its address, lower case. */
    relayer: relayer.address,
    /** What a new transaction offers from now on. */
    setFees(present: Fees): void {
      fees = present;
    },
  };
}

export type LaneStage = Awaited<ReturnType<typeof openLaneStage>>;

export function freshPayer(): string {
  return privateKeyToAccount(generatePrivateKey()).address.toLowerCase();
}

export async function until(holds: () => boolean, what: string): Promise<void> {
  for (let turns = 0; !holds(); turns += 1) {
    if (turns > MOST_TURNS) throw new Error(`it never came that ${what}`);
    await turn();
  }
}
