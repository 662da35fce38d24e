/**
 * The lane: puts waiting payments into transactions, each alone while few come and as a batch while
 * many do. One transaction is signed, written ahead and sent at a time.
 */

import type { Client, Hex } from 'viem';
import { getBlock, getTransactionCount } from 'viem/actions';
import { RecentMap } from '../../../time/recent-map.ts';
import type { Settlement } from '../../rail.ts';
import { askAsset, clientOver, type Head, type Rpc, readReceipt } from '../chain/node.ts';
import { hexWord, lowerHex, WORD_DIGITS } from '../evm/eip3009.ts';
import { type Excluded, isUnderpriced, type Relayer, type Sending, type watchFunds } from './relayer.ts';
import { gasOf, type JointVerdict, relayedCall, type Simulation } from './transfer.ts';
import {
  createUnderWay,
  keepHash,
  type LaneOrder,
  LanePayment,
  type Look,
  type Pause,
  type Question,
  watchBlocks,
} from './under-way.ts';

/** Most payments of one transaction. */
export const BATCH = 100;
/** Below so many transactions without a block, waiting payments are sent at once. */
export const SENT_AT_ONCE = 3;
/** Most transactions without a block: what nodes keep of one account. */
export const MOST_UNMINED = 16;
/** How long the simulation of a verification holds for the settlement, milliseconds. */
export const SIMULATION_FRESH_MS = 1_000;
/** Most payers whose last sending is remembered: above those of one `SIMULATION_FRESH_MS`. */
const REMEMBERED_PAYERS = 4_096;
/** Most numbers that one settlement loses to transactions of other replicas. */
const NUMBERS_LOST = 3;

/** Verdicts that keep a payment from being sent. */
export type Refusing = Exclude<JointVerdict, { readonly kind: 'valid' | 'behind' }>;

/** `done`: each payment is under way or has its outcome. */
type SendResult = 'done' | 'refused for funds';

const UNFUNDED = { kind: 'unfunded', cause: 'the relayer cannot pay the gas' } as const;

interface LaneDeps {
  readonly rpc: Rpc;
  /** Reads the newest block. */
  readonly head: () => Promise<Head>;
  readonly asset: string;
  /** Blocks that must hold an outcome, its own included. */
  readonly confirmations: number;
  readonly relayer: Relayer;
  readonly funds: ReturnType<typeof watchFunds>;
  readonly simulation: Simulation;
  /** The outcome of a payment whose simulation failed. Never rejects. */
  readonly refuse: (payment: LanePayment, verdict: Refusing) => Promise<Settlement>;
  /** Asks the chain for the outcome. Never rejects. */
  readonly decide: (payment: LanePayment, question: Question) => Promise<Settlement>;
  /** Gets what each look for blocks showed. */
  readonly looked?: (look: Look) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Replaced in tests that say when to look. */
  readonly pause?: Pause;
}

export function createLane(deps: LaneDeps) {
  const { rpc, relayer, asset, funds, simulation, now } = deps;
  const client = clientOver(rpc.call);
  let waiting: LanePayment[] = [];
  /** Halves of batches that failed; each is tried as it is. */
  const halves: (readonly LanePayment[])[] = [];
  /** Payments that fail behind others of their payers, until those others have their outcome. */
  let behind: { readonly payment: LanePayment; readonly others: readonly LanePayment[] }[] = [];
  /** When a payment was last sent, by payer. */
  const sentAt = new RecentMap<number>(REMEMBERED_PAYERS);
  let working = false;
  let mayAdd = true;

  const next = (): readonly LanePayment[] | undefined => {
    const { unmined } = underWay;
    const free = behind.filter(({ others }) => others.every(({ ended }) => ended));
    behind = behind.filter((one) => !free.includes(one));
    waiting = [...free.map(({ payment }) => payment), ...waiting];
    const hasRoom = unmined < SENT_AT_ONCE || (mayAdd && unmined < MOST_UNMINED);
    if (!hasRoom) return undefined;
    const taken = halves.shift() ?? waiting.splice(0, BATCH);
    if (taken.length === 0) return undefined;
    mayAdd = false;
    return taken;
  };
  const work = async (): Promise<void> => {
    if (working) return;
    working = true;
    for (let taken = next(); taken !== undefined; taken = next()) {
      try {
        await settleTogether(taken);
      } catch (cause) {
        for (const payment of taken) if (!payment.ended) payment.end({ kind: 'uncertain', cause: textOf(cause) });
      }
    }
    working = false;
  };
  const settleTogether = async (taken: readonly LanePayment[]): Promise<void> => {
    const { batch, single } = await divide(inTime(taken));
    // Each single payment takes a number: those above the room wait, also for their simulation.
    const room = MOST_UNMINED - underWay.unmined - (batch.length > 0 ? 1 : 0);
    waiting = [...single.slice(room), ...waiting];
    const going = [batch, ...single.slice(0, room).map((payment) => [payment])];
    const sendable = await Promise.all(going.map(passing));
    const left: LanePayment[] = [];
    for (const payments of sendable.flat()) {
      // The transactions before these payments may have taken long.
      const timely = inTime(payments);
      if (underWay.unmined >= MOST_UNMINED) left.push(...timely);
      else if (timely.length > 0) await sendAffordable(timely);
    }
    waiting = [...left, ...waiting];
  };
  const inTime = (payments: readonly LanePayment[]): readonly LanePayment[] =>
    payments.filter((payment) => {
      if (now() < payment.order.endsAt) return true;
      payment.end(unsent(payment, 'no turn in time'));
      return false;
    });
  /** The payments that pass, by transaction; the others get their outcome, or wait. */
  const passing = async (payments: readonly LanePayment[]): Promise<readonly (readonly LanePayment[])[]> => {
    const ofPayer = Map.groupBy(payments, ({ payer }) => payer);
    // A payment that passed alone can fail only behind others of its payer.
    const unsure = payments.filter((payment) => !isFresh(payment) || ofPayer.get(payment.payer)?.length !== 1);
    if (unsure.length === 0) return [payments];
    const verdicts = await Promise.all(await simulation.simulate(unsure.map(({ transfer }) => transfer)));
    const verdictOf = new Map(unsure.map((payment, at) => [payment, verdicts[at]]));
    const passed = payments.filter((payment) => (verdictOf.get(payment)?.kind ?? 'valid') === 'valid');
    const going = new Set(passed);
    const alone: (readonly LanePayment[])[] = [];
    for (const [payment, verdict] of verdictOf) {
      if (verdict === undefined || verdict.kind === 'valid') continue;
      if (verdict.kind !== 'behind') {
        payment.end(deps.refuse(payment, verdict));
        continue;
      }
      const others = ofPayer.get(payment.payer)?.filter((other) => going.has(other)) ?? [];
      if (others.length > 0) behind.push({ payment, others });
      else {
        // It is behind no payment of its payer, so it fails in any batch and goes alone.
        alone.push([payment]);
        going.add(payment);
      }
    }
    return [passed, ...alone];
  };
  /** Whether a simulation is recent, and no payment of the payer was sent since. */
  const isFresh = ({ order: { simulatedAt }, payer, history }: LanePayment): boolean =>
    !history.sentBefore &&
    simulatedAt !== undefined &&
    now() - simulatedAt < SIMULATION_FRESH_MS &&
    (sentAt.use(payer) ?? Number.NEGATIVE_INFINITY) < simulatedAt;
  /** Payers with code never share a transaction: it may use up the gas of all. */
  const divide = async (
    payments: readonly LanePayment[],
  ): Promise<{ readonly batch: readonly LanePayment[]; readonly single: readonly LanePayment[] }> => {
    if (payments.length <= 1 || !(await simulation.canBatch())) return { batch: [], single: payments };
    const plain = payments.filter(({ transfer }) => transfer.signedBy === 'account');
    const coded = await payersWithCode(
      client,
      plain.map(({ payer }) => payer),
    ).catch(() => undefined);
    const batch = coded === undefined ? [] : plain.filter(({ payer }) => !coded.has(payer));
    return { batch, single: payments.filter((payment) => !batch.includes(payment)) };
  };
  /** As many as the relayer can pay for; the others wait for their turn. */
  const sendAffordable = async (payments: readonly LanePayment[]): Promise<void> => {
    const left = (): LanePayment[] => payments.filter(({ ended }) => !ended);
    for (let going = payments; going.length > 0; going = left().slice(0, going.length >> 1)) {
      if (await funds.isShort(gasOf(going.map(({ transfer }) => transfer)))) continue;
      // A node may refuse although funds seem enough: its pool may hold others of the relayer.
      if ((await send(going)) === 'refused for funds') continue;
      const tried = new Set(going);
      waiting = [...left().filter((payment) => !tried.has(payment)), ...waiting];
      return;
    }
    for (const payment of left()) payment.end(unfunded(payment));
  };
  const unfunded = (payment: LanePayment): Settlement | Promise<Settlement> =>
    payment.refusal === undefined
      ? deps.refuse(payment, UNFUNDED)
      : outcomeOf(payment, payment.refusal.sending, payment.refusal.inBatch);

  /** Signs and sends, again with the next number where another transaction took this one. */
  const send = async (payments: readonly LanePayment[]): Promise<SendResult> => {
    let going = payments;
    const write = async (signed: { readonly hash: string; readonly raw: string }) => {
      const { kept, lost } = await keepHash(going, signed);
      for (const { payment, cause } of lost) payment.end(unsent(payment, cause));
      if (kept.length === 0) throw lost[0]?.cause;
      if (lost.length === 0) return undefined;
      going = kept;
      return relayedCall(asset, going);
    };
    for (let lost = 1; ; lost += 1) {
      const sending = await relayer.send(relayedCall(asset, going), write);
      if (lost < NUMBERS_LOST && isTaken(sending, going)) {
        for (const payment of going) payment.sent = true;
        continue;
      }
      if (sending.kind !== 'excluded' || sending.exclusion !== 'outrun') return after(sending, going);
      // These very bytes may have taken the number: then nothing may be concluded or sent.
      if (!(await isOutrun(client, relayer.address, asset, sending, going).catch(() => false)))
        return after({ kind: 'unclear', hash: sending.hash, cause: sending.cause }, going);
      if (lost >= NUMBERS_LOST) return after(sending, going);
    }
  };
  const after = async (sending: Sending, payments: readonly LanePayment[]): Promise<SendResult> => {
    const going = payments.filter(({ ended }) => !ended);
    const inBatch = going.length > 1;
    if (sending.kind === 'sent') {
      for (const payment of going) {
        payment.sent = true;
        sentAt.add(payment.payer, now());
      }
      underWay.add(sending, going);
      blocks.begin();
      return 'done';
    }
    if (sending.kind === 'excluded' && sending.exclusion !== 'outrun') {
      for (const payment of going) payment.refusal = { sending, inBatch };
      if (inBatch) await funds.look().catch(() => undefined);
      else funds.refused();
      return 'refused for funds';
    }
    for (const payment of going) payment.end(outcomeOf(payment, sending, inBatch));
    return 'done';
  };
  const outcomeOf = (
    payment: LanePayment,
    sending: Exclude<Sending, { readonly kind: 'sent' }>,
    inBatch: boolean,
  ): Settlement | Promise<Settlement> => {
    if (sending.kind === 'unsent') return unsent(payment, sending.cause);
    const { hash: transaction } = sending;
    if (sending.kind === 'excluded' && !payment.history.sentBefore)
      return {
        kind: 'withdrawn',
        reason: 'relayer_unfunded',
        cause: `no node took it: ${textOf(sending.cause)}`,
        transaction,
      };
    // A failed broadcast may have arrived all the same: one reading, and the hash is kept.
    const cause = `the broadcast failed: ${textOf(sending.cause)}`;
    return deps.decide(payment, { transaction, inBatch, waitMs: 0, cause });
  };

  const underWay = createUnderWay({
    ...deps,
    /** A batch that failed as a whole is tried in halves. */
    reverted(payments) {
      const middle = payments.length >> 1;
      halves.push(...[payments.slice(0, middle), payments.slice(middle)].filter(({ length }) => length > 0));
      void work();
    },
  });
  const blocks = watchBlocks({
    ...deps,
    client,
    awaited: () => underWay.hashes(),
    looked(look) {
      deps.looked?.(look);
      underWay.looked(look);
      // New blocks may have made room.
      mayAdd = true;
      void work();
    },
  });

  return {
    /** Settles one payment. Never rejects. */
    settle(order: LaneOrder): Promise<Settlement> {
      const payment = new LanePayment(order);
      waiting.push(payment);
      void work();
      return payment.settlement;
    },
    underWay,
  };
}

/**
 * Whether another transaction took the number: it is used up in a block in which every one of the
 * authorizations is still unspent, and the hash has no receipt. All are read at one block hash,
 * because behind a balancer two answers may come from two nodes.
 * @throws when the node does not answer, or knows no reading by hash
 */
async function isOutrun(
  client: Client,
  account: string,
  asset: string,
  { number, hash }: Excluded,
  payments: readonly LanePayment[],
): Promise<boolean> {
  const { hash: blockHash } = await getBlock(client);
  const [count, receipt, states] = await Promise.all([
    getTransactionCount(client, { address: lowerHex(account), blockHash }),
    readReceipt(client, hash),
    Promise.all(
      payments.map(({ transfer: { authorization } }) => {
        const args = [lowerHex(authorization.from), lowerHex(authorization.nonce)] as const;
        return askAsset(client, asset, 'authorizationState', args, { blockHash });
      }),
    ),
  ]);
  return count > number && receipt === undefined && states.every((state) => state === 0n);
}

/**
 * Whether the pool has another transaction of the number, such as one of another process with the
 * key. The first one may still be mined, and a second one cannot pay twice; but the code of a payer
 * may behave otherwise then, so a payment that a contract signed is sent once.
 */
function isTaken(sending: Sending, payments: readonly LanePayment[]): boolean {
  const isFirm = payments.every(({ transfer }) => transfer.signedBy === 'account');
  return isFirm && sending.kind === 'unclear' && isUnderpriced(sending.cause);
}

/** The outcome of an attempt that sent nothing; an earlier one that sent may leave it open. */
function unsent({ history }: LanePayment, why: unknown): Settlement {
  const cause = `nothing was sent: ${textOf(why)}`;
  return history.sentBefore
    ? { kind: 'uncertain', cause }
    : { kind: 'withdrawn', reason: 'provider_unavailable', cause };
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Init code that gives back, for each word behind it, the size of the code at that address. A call
 * without an address runs it, so nothing has to be deployed for it.
 */
const CODE_SIZES = [
  // Copies the words behind these 33 bytes to memory; their length stays on the stack.
  '602138038060213d39',
  // From place 0 on, as long as it is below that length:
  '3d5b81811015601d57',
  // the word there becomes the size of the code at it, and the next place follows.
  '80513b8152602001600a56',
  // Gives the memory back.
  '5b503df3',
].join('');

/** The payers that have code, in lower case. @throws when the node does not answer */
export async function payersWithCode(client: Client, payers: readonly string[]): Promise<ReadonlySet<string>> {
  const asked = [...new Set(payers.map((payer) => payer.toLowerCase()))];
  const data: Hex = `0x${CODE_SIZES}${asked.map(hexWord).join('')}`;
  const sizes = await client.request({ method: 'eth_call', params: [{ data }, 'latest'] });
  if (sizes.length !== 2 + asked.length * WORD_DIGITS) throw new Error('the node does not say which payers have code');
  return new Set(
    asked.filter((_, at) => /[1-9a-f]/.test(sizes.slice(2 + at * WORD_DIGITS, 2 + (at + 1) * WORD_DIGITS))),
  );
}
