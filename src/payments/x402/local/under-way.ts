/**
 * The lane's transactions under way: the look for their blocks, their receipts, their outcomes, and
 * their rising fees.
 */

import type { Client } from 'viem';
import type { Settlement, SettlementHistory, SignedTransaction } from '../../rail.ts';
import { evidenceQuery, paymentFinder } from '../chain/chain.ts';
import {
  type Head,
  lacksMethod,
  type Rpc,
  readBlockReceipts,
  readReceipt,
  type TransactionReceipt,
} from '../chain/node.ts';
import type { PaymentRequirements, Proof } from '../wire/types.ts';
import {
  type Excluded,
  FeesAtLimit,
  NumberTaken,
  type RelayedCall,
  type Relayer,
  type Sending,
  type Sent,
} from './relayer.ts';
import { ACCOUNT_GAS, relayedCall, type Transfer } from './transfer.ts';

/** One order to settle. */
export interface LaneOrder {
  readonly proof: Proof;
  readonly offer: PaymentRequirements;
  readonly transfer: Transfer;
  readonly history: SettlementHistory;
  /** Keeps a hash in the payment's record. A rejection keeps the payment out of the transaction. */
  readonly writeAhead: (transaction: SignedTransaction) => Promise<void>;
  /** When it has to have an outcome, on the lane's clock, milliseconds. */
  readonly endsAt: number;
  /** When its transfer passed a simulation, on the lane's clock; undefined: in none. */
  readonly simulatedAt: number | undefined;
}

/** A transaction with the payment that a node refused and keeps nothing of. */
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
  /** A node may have taken a transaction of it in this attempt. */
  sent = false;
  /** The last refusal of this attempt. */
  refusal: Refusal | undefined;
  ended = false;
  readonly #resolve: (settlement: Settlement | Promise<Settlement>) => void;

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

  /** The history of the order, with the sendings and refusals of this attempt. */
  get history(): SettlementHistory {
    const { history } = this.order;
    if (this.sent) return { ...history, sentBefore: true };
    return this.refusal === undefined ? history : { ...history, withdrawnBefore: true };
  }

  /** The first outcome counts. */
  end(settlement: Settlement | Promise<Settlement>): void {
    this.ended = true;
    this.#resolve(settlement);
  }
}

/**
 * Writes one transaction ahead for all its payments, in one round trip of the store: tells which
 * records have its hash, and which have not. Only a transaction of one payment is kept with its
 * bytes.
 */
export async function keepHash(payments: readonly LanePayment[], signed: SignedTransaction) {
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

/** Blocks without a transaction, and milliseconds since its broadcast, before its fees rise. */
export const BLOCKS_BEFORE_RAISE = 3n;
export const RAISE_AFTER_MS = 2_000;

/** A question to the chain about a payment whose transaction decides nothing by itself. */
export interface Question {
  readonly transaction: string;
  /** The transaction carried it among others. */
  readonly inBatch: boolean;
  /** How long the chain is asked again, milliseconds; 0: one reading. */
  readonly waitMs: number;
  /** The cause of an outcome that stays open. */
  readonly cause: string;
}

/** One signed form of a transaction: with each raise another hash, and maybe fewer payments. */
interface Variant {
  readonly hash: string;
  readonly payments: readonly LanePayment[];
}

interface Transaction {
  /** Newest last: any of them may come into a block. */
  readonly variants: Variant[];
  readonly payments: readonly LanePayment[];
  /** The form and fees that the next raise goes above. */
  offered: Sent;
  sentAt: number;
  /** The first block that was seen after the last broadcast. */
  sinceBlock: bigint | undefined;
  raising: boolean;
  /** Why its fees do not rise any more. */
  atLimit: FeesAtLimit | undefined;
  /** In a block that too few others confirm. */
  mined: boolean;
  /** A transaction in a block has its number: one of its variants or another one. */
  outrun: boolean;
}

interface UnderWayDeps {
  readonly relayer: Relayer;
  readonly asset: string;
  /** Blocks that must hold an outcome, its own included. */
  readonly confirmations: number;
  /** Asks the chain for the outcome. Never rejects. */
  readonly decide: (payment: LanePayment, question: Question) => Promise<Settlement>;
  /** Gets the payments of a batch that failed as a whole: their authorizations are unspent. */
  readonly reverted: (payments: readonly LanePayment[]) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/**
 * Transactions that a node took, until each payment in them has its outcome and their number is
 * used up: as long as it is not, the transactions behind it have no block.
 */
export function createUnderWay(deps: UnderWayDeps) {
  const { relayer, asset, confirmations, decide, reverted, now } = deps;
  const transactions = new Set<Transaction>();
  const unmined = (): Transaction[] => [...transactions].filter(({ mined, outrun }) => !mined && !outrun);

  /** Ends payments that the logs show as paid; a reading of the chain or a retry decides others. */
  const conclude = (transaction: Transaction, variant: Variant, receipt: TransactionReceipt): void => {
    const isBatch = variant.payments.length > 1;
    const find = paymentFinder(receipt, asset);
    const unspent: LanePayment[] = [];
    for (const payment of open(transaction)) {
      const { proof, offer, endsAt } = payment.order;
      const carried = variant.payments.includes(payment);
      if (find(evidenceQuery(proof, offer)) === 'paid')
        payment.end({ kind: 'settled', evidence: 'logs', transaction: receipt.transactionHash });
      else if (isBatch && carried && receipt.status === 'reverted') unspent.push(payment);
      else
        payment.end(
          decide(payment, {
            transaction: variant.hash,
            inBatch: isBatch && carried,
            waitMs: carried ? endsAt - now() : 0,
            cause: 'not mined in time',
          }),
        );
    }
    if (unspent.length > 0) reverted(unspent);
  };
  const endLate = (transaction: Transaction): void => {
    const { hash } = latest(transaction);
    const question = { transaction: hash, inBatch: false, waitMs: 0, cause: 'not mined in time' };
    for (const payment of open(transaction)) if (now() >= payment.order.endsAt) payment.end(decide(payment, question));
  };
  const isDue = ({ raising, sinceBlock, sentAt }: Transaction, block: bigint): boolean =>
    !raising &&
    sinceBlock !== undefined &&
    block - sinceBlock >= BLOCKS_BEFORE_RAISE &&
    now() - sentAt >= RAISE_AFTER_MS;
  const offerMore = async (transaction: Transaction): Promise<Sending> => {
    let payments: readonly LanePayment[] = open(transaction);
    // All its payments have ended: a transaction that does nothing uses up its number.
    const call = payments.length === 0 ? noCall(relayer.address) : relayedCall(asset, payments);
    const sending = await relayer.replace(transaction.offered, call, async (signed) => {
      if (payments.length === 0) return undefined;
      // A block may have come before the turn: then the records have the hash that counts.
      const left = transactions.has(transaction) ? payments.filter(({ ended }) => !ended) : [];
      const { kept, lost } = await keepHash(left, signed);
      if (kept.length === 0) throw lost[0]?.cause ?? new Error('no payment in it waits for a block any more');
      const isWhole = kept.length === payments.length;
      payments = kept;
      return isWhole ? undefined : relayedCall(asset, payments);
    });
    if (sending.kind === 'sent' || sending.kind === 'unclear')
      transaction.variants.push({ hash: sending.hash, payments });
    return sending;
  };
  /** Raises the fees. The earlier variants stay possible, so their hashes stay awaited. */
  const raise = async (transaction: Transaction): Promise<void> => {
    const sending = await offerMore(transaction);
    if (sending.kind === 'sent') transaction.offered = sending;
    transaction.atLimit = sending.kind === 'unsent' && sending.cause instanceof FeesAtLimit ? sending.cause : undefined;
    transaction.outrun = isOutrun(sending);
    [transaction.sentAt, transaction.sinceBlock] = [now(), undefined];
  };
  const leaveIfDone = (transaction: Transaction): void => {
    const isUsedUp = transaction.mined || transaction.outrun;
    if (isUsedUp && open(transaction).length === 0) transactions.delete(transaction);
  };
  /** Raises the lowest number alone: those behind it wait for it, whatever they offer. */
  const raiseFirst = ({ head, complete }: Look): void => {
    const [first] = unmined().sort((one, other) => one.offered.number - other.offered.number);
    if (first === undefined || head === undefined || !complete || !isDue(first, head.number)) return;
    first.raising = true;
    void raise(first).finally(() => {
      first.raising = false;
    });
  };
  const advance = (transaction: Transaction, { head, receipts, complete }: Look): void => {
    const variant = transaction.variants.find(({ hash }) => receipts.has(hash));
    const receipt = variant && receipts.get(variant.hash);
    if (variant !== undefined && receipt !== undefined && head !== undefined) {
      transaction.mined = true;
      if (confirmations === 1 || head.number - receipt.blockNumber >= BigInt(confirmations - 1)) {
        transactions.delete(transaction);
        conclude(transaction, variant, receipt);
        return;
      }
    } else if (complete) transaction.mined = false;
    if (head !== undefined) transaction.sinceBlock ??= head.number;
    endLate(transaction);
    leaveIfDone(transaction);
  };

  return {
    add(sent: Sent, payments: readonly LanePayment[]): void {
      const variants = [{ hash: sent.hash, payments }];
      const state = { sinceBlock: undefined, raising: false, atLimit: undefined, mined: false, outrun: false };
      transactions.add({ variants, payments, offered: sent, sentAt: now(), ...state });
    },
    /** Transactions that wait for a block. */
    get unmined(): number {
      return unmined().length;
    },
    /** All hashes under which transactions may be mined. */
    hashes: () => [...transactions].flatMap(({ variants }) => variants.map(({ hash }) => hash)),
    /** The cause of a transaction without a block, whose fees have risen as far as they may. */
    heldUp: () => unmined().find(({ atLimit }) => atLimit !== undefined)?.atLimit?.message,
    looked(look: Look): void {
      for (const transaction of [...transactions]) advance(transaction, look);
      raiseFirst(look);
    },
  };
}

/** The payments of a transaction that have no outcome. */
function open({ payments }: Transaction): LanePayment[] {
  return payments.filter(({ ended }) => !ended);
}

function latest({ variants, offered }: Transaction): { readonly hash: string } {
  return variants.at(-1) ?? offered;
}

/** A transaction of the account to itself. */
function noCall(account: string): RelayedCall {
  return { to: account, data: '0x', gas: ACCOUNT_GAS };
}

/** Whether another transaction has the number: no raise helps any more. */
function isOutrun(sending: Sending): boolean {
  return sending.kind === 'excluded'
    ? sending.exclusion === 'outrun'
    : sending.kind === 'unsent' && sending.cause instanceof NumberTaken;
}

/** The first pause where blocks follow a transaction at once, milliseconds; it doubles. */
const FIRST_PAUSE_MS = 5;
/** Bounds of the pauses where blocks come by time, milliseconds; looks per interval of blocks. */
const PAUSE_MS = { least: 25, most: 500 } as const;
const LOOKS_A_BLOCK = 8;
/** Assumed until two blocks were seen, milliseconds. */
const USUAL_INTERVAL_MS = 1_000;
/** A transaction that had its block in this time shows that blocks follow at once. */
const AT_ONCE_MS = 100;
/** Receipts are read again after this time, milliseconds: behind a balancer nodes differ. */
const RECEIPTS_AGAIN_MS = 1_000;
/** Up to so many transactions are asked for one by one: a whole block may be megabytes. */
export const FEW_TRANSACTIONS = 4;
/** After a failed reading by block the next is tried no sooner, milliseconds. */
export const BY_BLOCK_AGAIN_MS = 10_000;

/** The result of one look. */
export interface Look {
  /** Undefined when the node did not answer. */
  readonly head: Head | undefined;
  /** Receipts by hash, of the awaited transactions that are in a block. */
  readonly receipts: ReadonlyMap<string, TransactionReceipt>;
  /** Whether all receipts were asked for: then one that is missing is in no block. */
  readonly complete: boolean;
}

/** The pause between two looks. */
export interface Pause {
  /** Resolves after so many milliseconds, or when it is ended. */
  begin(ms: number): Promise<void>;
  end(): void;
}

interface BlockWatchDeps {
  readonly client: Client;
  readonly rpc: Pick<Rpc, 'call'>;
  /** Reads the newest block. */
  readonly head: () => Promise<Head>;
  /** The hashes of the transactions under way. */
  readonly awaited: () => readonly string[];
  readonly looked: (look: Look) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Replaced in tests that say when to look. */
  readonly pause?: Pause;
}

/** Looks for new blocks again and again while something is awaited. */
export function watchBlocks(deps: BlockWatchDeps) {
  const { awaited, looked, now = () => performance.now(), pause = timedPause() } = deps;
  const pace = createPace(now);
  const receipts = receiptReader(deps, now);
  let last: Head | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let running = false;

  const look = async (): Promise<Look> => {
    const nothing = { receipts: new Map<string, TransactionReceipt>(), complete: false };
    let head: Head | undefined;
    try {
      head = await deps.head();
      const isNew = head.number !== last?.number;
      if (isNew) pace.saw(head.number);
      if (!isNew && now() - readAt < RECEIPTS_AGAIN_MS) return { head, ...nothing };
      const found = await receipts(awaited(), head, last);
      [last, readAt] = [head, now()];
      if (found.size > 0) pace.mined();
      return { head, receipts: found, complete: true };
    } catch {
      return { head, ...nothing };
    }
  };
  const run = async (): Promise<void> => {
    running = true;
    while (awaited().length > 0) {
      await pause.begin(pace.next());
      looked(await look());
    }
    running = false;
  };
  return {
    /** A transaction was sent: its block may be there at once. */
    begin(): void {
      if (pace.begin()) pause.end();
      if (!running) void run();
    },
  };
}

/** Keeps no process running: callers that wait for the outcomes do that. */
function timedPause(): Pause {
  let end: () => void = () => undefined;
  return {
    begin: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms).unref();
        end = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
    end: () => end(),
  };
}

/** How long to wait between looks. */
function createPace(now: () => number) {
  let atOnce = true;
  let sentAt = 0;
  let short = FIRST_PAUSE_MS;
  let interval = USUAL_INTERVAL_MS;
  let seen: { readonly block: bigint; readonly at: number } | undefined;
  return {
    /** A transaction was sent. True when its block may be there at once. */
    begin(): boolean {
      sentAt = now();
      short = FIRST_PAUSE_MS;
      return atOnce;
    },
    saw(block: bigint): void {
      const at = now();
      // A longer silence is that of the gateway, which looks only while something is under way.
      if (seen !== undefined && block > seen.block && at - seen.at < 60_000)
        interval = (at - seen.at) / Number(block - seen.block);
      seen = { block, at };
    },
    /** A transaction under way has its block. */
    mined(): void {
      atOnce = now() - sentAt < AT_ONCE_MS;
    },
    /** Milliseconds until the next look. */
    next(): number {
      // A block that is late shows that the interval has grown.
      const late = seen === undefined ? 0 : Math.min(now() - seen.at, now() - sentAt);
      const long = Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, interval / LOOKS_A_BLOCK, late / LOOKS_A_BLOCK));
      if (!atOnce) return long;
      const pause = Math.min(short, long);
      short *= 2;
      return pause;
    },
  };
}

type ReadReceipts = (
  transactions: readonly string[],
  head: Head,
  last: Head | undefined,
) => Promise<ReadonlyMap<string, TransactionReceipt>>;

/** Reads the receipts of many transactions by block, if the node can and `head` is the next one. */
function receiptReader({ client, rpc }: BlockWatchDeps, now: () => number): ReadReceipts {
  let byBlockFrom = Number.NEGATIVE_INFINITY;
  const ofBlock = async (
    transactions: readonly string[],
    block: bigint,
  ): Promise<readonly TransactionReceipt[] | undefined> => {
    try {
      return await readBlockReceipts(rpc.call, block, transactions);
    } catch (error) {
      // Silence or a block that is too large says nothing about later ones.
      byBlockFrom = lacksMethod(error) ? Number.POSITIVE_INFINITY : now() + BY_BLOCK_AGAIN_MS;
      return undefined;
    }
  };
  return async function readReceipts(transactions, head, last) {
    const isNext = last !== undefined && head.number === last.number + 1n;
    const many = now() >= byBlockFrom && isNext && transactions.length > FEW_TRANSACTIONS;
    const inBlock = (many ? await ofBlock(transactions, head.number) : undefined) ?? [];
    const found = new Map<string, TransactionReceipt>(inBlock.map((receipt) => [receipt.transactionHash, receipt]));
    // Earlier blocks may have the others: too few confirm them, or their broadcast ended late.
    const others = transactions.filter((transaction) => !found.has(transaction));
    for (const receipt of await Promise.all(others.map((transaction) => readReceipt(client, transaction))))
      if (receipt !== undefined) found.set(receipt.transactionHash, receipt);
    return found;
  };
}
