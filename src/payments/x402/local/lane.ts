/**
 * The lane: what waits to be settled goes into one transaction, alone while little comes and as a
 * batch while much does. One transaction is signed, written ahead and sent at a time.
 */

import type { Client } from 'viem';
import { getBlock, getTransactionCount } from 'viem/actions';
import type { Settlement, SettlementHistory, SignedTransaction } from '../../rail.ts';
import { askAsset, readReceipt } from '../chain/client.ts';
import { lowerHex } from '../evm/eip3009.ts';
import type { Eip3009Authorization, PaymentRequirements, Proof } from '../wire/types.ts';
import { type Excluded, isUnderpriced, type Relayer, type Sending } from './relayer.ts';
import { gasOf, type JointSimulation, type JointVerdict, relayedCall, type Transfer } from './transfer.ts';
import type { Question, UnderWay } from './under-way.ts';

/** A number, the hash of the transaction that was to have it, and all that it would have spent. */
interface OutrunQuestion {
  readonly number: number;
  readonly hash: string;
  readonly authorizations: readonly Eip3009Authorization[];
}

/**
 * Whether another transaction took the number: it is used up in a block in which every one of the
 * authorizations is still unspent, and the hash has no receipt. All are read at one block hash,
 * because behind a balancer two answers may come from two nodes.
 * @throws when the node does not answer, or knows no reading by hash
 */
export async function isOutrun(
  client: Client,
  account: string,
  asset: string,
  { number, hash, authorizations }: OutrunQuestion,
): Promise<boolean> {
  const { hash: blockHash } = await getBlock(client);
  const [count, receipt, states] = await Promise.all([
    getTransactionCount(client, { address: lowerHex(account), blockHash }),
    readReceipt(client, hash),
    Promise.all(
      authorizations.map(({ from, nonce }) =>
        askAsset(client, asset, 'authorizationState', [lowerHex(from), lowerHex(nonce)], { blockHash }),
      ),
    ),
  ]);
  return count > number && receipt === undefined && states.every((state) => state === 0n);
}

/** The name that was noted the longest time ago is forgotten first. */
export function createLatestTimes(most: number) {
  const times = new Map<string, number>();
  return {
    note(name: string, at: number): void {
      // Deleted first, so that the map stays in the order of time.
      times.delete(name);
      times.set(name, at);
      if (times.size <= most) return;
      const [oldest] = times.keys();
      if (oldest !== undefined) times.delete(oldest);
    },
    at: (name: string) => times.get(name),
    forget: (name: string) => void times.delete(name),
  };
}

/** Most payments of one transaction. */
export const BATCH = 100;
/** Below so many transactions without a block, what waits is sent at once. */
export const SENT_AT_ONCE = 3;
/** Most transactions without a block: what nodes keep of one account. */
export const MOST_UNMINED = 16;
/** How long the simulation of a verification holds for the settlement, milliseconds. */
export const SIMULATION_FRESH_MS = 1_000;
/** Most payers whose last sending is remembered, above what is sent in that time. */
const REMEMBERED_PAYERS = 4_096;
/** Most numbers that one settlement loses to transactions of other replicas. */
const NUMBERS_LOST = 3;

export interface Lane {
  /** Settles one payment. Never rejects. */
  settle(order: LaneOrder): Promise<Settlement>;
  /** Goes on: blocks were looked for, which may have made room. */
  looked(): void;
  /** Takes the payments of a batch that failed as a whole, to try them in halves. */
  reverted(payments: readonly LanePayment[]): void;
}

interface LaneDeps {
  readonly relayer: Pick<Relayer, 'send'>;
  readonly asset: string;
  readonly simulate: JointSimulation;
  readonly canBatch: () => Promise<boolean>;
  /** Of these payers, those with code, in lower case. @throws when the node does not answer */
  readonly payersWithCode: (payers: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Whether the relayer is known to be unable to pay so much gas. */
  readonly isShort: (gas: bigint) => Promise<boolean>;
  /** Reads what the relayer has now. Never rejects. */
  readonly readFunds: () => Promise<void>;
  /** Notes that the relayer could not pay for a single payment. */
  readonly refusedForFunds: () => void;
  /** Whether another transaction took this number. @throws when the node does not answer */
  readonly isOutrun: (question: OutrunQuestion) => Promise<boolean>;
  /** The outcome of a payment whose simulation failed. Never rejects. */
  readonly refuse: (payment: LanePayment, verdict: Refusing) => Promise<Settlement>;
  readonly decide: (payment: LanePayment, question: Question) => Promise<Settlement>;
  readonly underWay: Pick<UnderWay, 'add' | 'unmined'>;
  /** Something was sent: its block may be there at once. */
  readonly sent: () => void;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** Verdicts that keep a payment from being sent. */
export type Refusing = Exclude<JointVerdict, { readonly kind: 'valid' | 'behind' }>;

/** `done`: each payment is under way or has its outcome. */
type SendResult = 'done' | 'refused for funds';

const UNFUNDED = { kind: 'unfunded', cause: 'the relayer cannot pay the gas' } as const;

export function createLane(deps: LaneDeps): Lane {
  const { relayer, asset, underWay, now } = deps;
  let waiting: LanePayment[] = [];
  /** Halves of batches that failed; each is tried as it is. */
  const halves: (readonly LanePayment[])[] = [];
  /** Those that fail behind others of their payers, until these have their outcome. */
  let behind: { readonly payment: LanePayment; readonly others: readonly LanePayment[] }[] = [];
  /** When a payment was last sent, by payer. */
  const sentAt = createLatestTimes(REMEMBERED_PAYERS);
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
    // Each that goes alone takes a number: what is above the room waits, also for its simulation.
    const room = MOST_UNMINED - underWay.unmined - (batch.length > 0 ? 1 : 0);
    waiting = [...single.slice(room), ...waiting];
    const going = [batch, ...single.slice(0, room).map((payment) => [payment])];
    const sendable = await Promise.all(going.map(passing));
    const left: LanePayment[] = [];
    for (const payments of sendable.flat()) {
      // Those before them may have taken long.
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
  /** Those whose transfers pass, as they are sent; the others have their outcome, or wait. */
  const passing = async (payments: readonly LanePayment[]): Promise<readonly (readonly LanePayment[])[]> => {
    const ofPayer = Map.groupBy(payments, ({ payer }) => payer);
    // What passed alone can fail only behind others of its payer.
    const unsure = payments.filter((payment) => !isFresh(payment) || ofPayer.get(payment.payer)?.length !== 1);
    if (unsure.length === 0) return [payments];
    const verdicts = await Promise.all(await deps.simulate(unsure.map(({ transfer }) => transfer)));
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
        // Behind none of its payer it fails in any batch: another simulation would show the same.
        alone.push([payment]);
        going.add(payment);
      }
    }
    return [passed, ...alone];
  };
  /** A payment of the same payer that was sent since may have used up its balance. */
  const isFresh = ({ order: { simulatedAt }, payer, history }: LanePayment): boolean =>
    !history.sentBefore &&
    simulatedAt !== undefined &&
    now() - simulatedAt < SIMULATION_FRESH_MS &&
    (sentAt.at(payer) ?? Number.NEGATIVE_INFINITY) < simulatedAt;
  /** Payers with code never share a transaction: it may use up the gas of all. */
  const divide = async (
    payments: readonly LanePayment[],
  ): Promise<{ readonly batch: readonly LanePayment[]; readonly single: readonly LanePayment[] }> => {
    if (payments.length <= 1 || !(await deps.canBatch())) return { batch: [], single: payments };
    const plain = payments.filter(({ transfer }) => transfer.signedBy === 'account');
    const coded = await deps.payersWithCode(plain.map(({ payer }) => payer)).catch(() => undefined);
    const batch = coded === undefined ? [] : plain.filter(({ payer }) => !coded.has(payer));
    return { batch, single: payments.filter((payment) => !batch.includes(payment)) };
  };
  /** As many as the relayer can pay for; the others wait for their turn. */
  const sendAffordable = async (payments: readonly LanePayment[]): Promise<void> => {
    const left = (): LanePayment[] => payments.filter(({ ended }) => !ended);
    for (let going = payments; going.length > 0; going = left().slice(0, going.length >> 1)) {
      if (await deps.isShort(gasOf(going.map(({ transfer }) => transfer)))) continue;
      // A node may refuse what funds seem to pay for: its pool may hold others of the relayer.
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
        for (const payment of going) payment.noteSent();
        continue;
      }
      if (sending.kind !== 'excluded' || sending.exclusion !== 'outrun') return after(sending, going);
      const { number, hash, cause } = sending;
      const authorizations = going.map(({ transfer }) => transfer.authorization);
      // These very bytes may have taken the number: then nothing may be concluded or sent.
      const isOutrun = await deps.isOutrun({ number, hash, authorizations }).catch(() => false);
      if (!isOutrun) return after({ kind: 'unclear', hash, cause }, going);
      if (lost >= NUMBERS_LOST) return after(sending, going);
    }
  };
  const after = async (sending: Sending, payments: readonly LanePayment[]): Promise<SendResult> => {
    const going = payments.filter(({ ended }) => !ended);
    const inBatch = going.length > 1;
    if (sending.kind === 'sent') {
      for (const payment of going) {
        payment.noteSent();
        sentAt.note(payment.payer, now());
      }
      underWay.add(sending, going);
      deps.sent();
      return 'done';
    }
    if (sending.kind === 'excluded' && sending.exclusion !== 'outrun') {
      for (const payment of going) payment.noteRefused({ sending, inBatch });
      if (inBatch) await deps.readFunds();
      else deps.refusedForFunds();
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

  return {
    settle(order) {
      const payment = new LanePayment(order);
      waiting.push(payment);
      void work();
      return payment.settlement;
    },
    looked() {
      mayAdd = true;
      void work();
    },
    reverted(payments) {
      const middle = payments.length >> 1;
      halves.push(...[payments.slice(0, middle), payments.slice(middle)].filter(({ length }) => length > 0));
      void work();
    },
  };
}

/**
 * Whether the pool has another transaction of the number, such as one of another process with the
 * key. Nothing follows about the first one, and a second one can be paid no second time; but the
 * code of a payer may behave otherwise then, so what contracts signed is sent once.
 */
function isTaken(sending: Sending, payments: readonly LanePayment[]): boolean {
  const isFirm = payments.every(({ transfer }) => transfer.signedBy === 'account');
  return isFirm && sending.kind === 'unclear' && isUnderpriced(sending.cause);
}

/** This attempt sent nothing. What an earlier one may have sent leaves the outcome open. */
function unsent({ history }: LanePayment, why: unknown): Settlement {
  const cause = `nothing was sent: ${textOf(why)}`;
  return history.sentBefore
    ? { kind: 'uncertain', cause }
    : { kind: 'withdrawn', reason: 'provider_unavailable', cause };
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** One order to settle. */
interface LaneOrder {
  readonly proof: Proof;
  readonly offer: PaymentRequirements;
  readonly transfer: Transfer;
  readonly history: SettlementHistory;
  /** Keeps a hash in the payment's record. When it rejects, that transaction must not carry it. */
  readonly writeAhead: (transaction: SignedTransaction) => Promise<void>;
  /** When it has to have an outcome, on the lane's clock, milliseconds. */
  readonly endsAt: number;
  /** When its transfer passed a simulation, on the lane's clock; undefined: in none. */
  readonly simulatedAt: number | undefined;
}

/** A transaction with the payment that a node refused: it keeps nothing of it. */
interface Refusal {
  readonly sending: Excluded;
  readonly inBatch: boolean;
}

/** An order that is under way in this process. */
export class LanePayment {
  readonly order: LaneOrder;
  readonly settlement: Promise<Settlement>;
  /** The hashes of its transactions, all of which its record has or had. */
  readonly signed = new Set<string>();
  readonly #resolve: (settlement: Settlement | Promise<Settlement>) => void;
  #sent = false;
  #refusal: Refusal | undefined;
  #ended = false;

  constructor(order: LaneOrder) {
    this.order = order;
    const { promise, resolve } = Promise.withResolvers<Settlement>();
    this.settlement = promise;
    this.#resolve = resolve;
  }

  get transfer(): Transfer {
    return this.order.transfer;
  }

  get mark(): string | undefined {
    return this.order.history.mark;
  }

  get payer(): string {
    return this.transfer.authorization.from.toLowerCase();
  }

  /** A node may have taken a transaction of it, in this attempt or an earlier one. */
  get history(): SettlementHistory {
    const { history } = this.order;
    if (this.#sent) return { ...history, sentBefore: true };
    return this.#refusal === undefined ? history : { ...history, withdrawnBefore: true };
  }

  noteSent(): void {
    this.#sent = true;
  }

  /** The last one, of this attempt. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  noteRefused(refusal: Refusal): void {
    this.#refusal = refusal;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The first outcome counts. */
  end(settlement: Settlement | Promise<Settlement>): void {
    this.#ended = true;
    this.#resolve(settlement);
  }
}

/** Which of the payments have the hash of a transaction in their records, and which have not. */
interface Kept {
  readonly kept: readonly LanePayment[];
  readonly lost: readonly { readonly payment: LanePayment; readonly cause: unknown }[];
}

/**
 * Writes one transaction ahead for all its payments, in one round trip of the store. Only a
 * transaction of one payment is kept with its bytes.
 */
export async function keepHash(payments: readonly LanePayment[], signed: SignedTransaction): Promise<Kept> {
  const transaction = payments.length === 1 ? signed : { hash: signed.hash };
  const written = await Promise.allSettled(payments.map(({ order }) => order.writeAhead(transaction)));
  const kept: LanePayment[] = [];
  const lost: { payment: LanePayment; cause: unknown }[] = [];
  for (const [at, payment] of payments.entries()) {
    const result = written[at];
    if (result?.status === 'fulfilled') {
      payment.signed.add(signed.hash);
      kept.push(payment);
    } else lost.push({ payment, cause: result?.reason });
  }
  return { kept, lost };
}
