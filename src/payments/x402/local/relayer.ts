/**
 * The relayer: the account that signs and broadcasts transactions, one at a time; the transactions
 * that it sent, what gas costs it, and its gas money.
 */

import type { Client } from 'viem';
import { getBalance, getTransactionCount, sendRawTransaction } from 'viem/actions';
import { hexToBigInt } from 'viem/utils';
import { clientOver, type Head, type Rpc, RpcRefusal } from '../chain/node.ts';
import { type Fees, prepareKey, signTransaction } from '../evm/account.ts';
import { lowerHex } from '../evm/eip3009.ts';
import { ACCOUNT_GAS } from './transfer.ts';

/** A pool takes a replacement that offers an eighth more in both fees: geth asks for a tenth. */
const RAISED = { by: 9n, of: 8n } as const;
/** The most that is offered for a number, as a multiple of what a new transaction offers now. */
export const MOST_RAISED = 4n;

/** A call that the relayer pays gas for. */
export interface RelayedCall {
  readonly to: string;
  readonly data: string;
  /** Gas limit. */
  readonly gas: bigint;
}

/** A signed transaction: its hash is known before anything is sent. */
export interface Signed {
  readonly hash: string;
  readonly raw: string;
}

/**
 * Keeps a signed transaction before it is sent. Resolves to a call to sign instead, under the same
 * number, when a part of it may not be sent. When it rejects, nothing is sent.
 */
type KeepSigned = (signed: Signed) => Promise<RelayedCall | undefined>;

/** A transaction that the node took, with its number and what it offers. */
export interface Sent extends Signed {
  readonly kind: 'sent';
  readonly number: number;
  readonly fees: Fees;
}

/** A transaction that the node keeps nothing of. */
export interface Excluded {
  readonly kind: 'excluded';
  readonly hash: string;
  readonly number: number;
  readonly exclusion: Exclusion;
  readonly cause: unknown;
}

/**
 * `unsent`: certainly nothing left; `sent`: the node took it; `unclear`: the node may or may not
 * have it; `excluded`: the node answered readably that it keeps nothing of it, and its number goes
 * to the next transaction.
 */
export type Sending =
  | { readonly kind: 'unsent'; readonly cause: unknown }
  | Sent
  | Excluded
  | { readonly kind: 'unclear'; readonly hash: string; readonly cause: unknown };

/** A transaction offers so much already that higher fees would not help it into a block. */
export class FeesAtLimit extends Error {
  constructor(number: number) {
    super(`transaction ${number} of the relayer has no block at ${MOST_RAISED} times the present fees`);
    this.name = 'FeesAtLimit';
  }
}

/** Another transaction has the number of an earlier one. */
export class NumberTaken extends Error {
  constructor(number: number) {
    super(`number ${number} of the relayer has gone to another transaction`);
    this.name = 'NumberTaken';
  }
}

/** A number and fees for a transaction. */
interface Place {
  readonly number: number;
  readonly fees: Fees;
}

export type Relayer = Awaited<ReturnType<typeof createRelayer>>;

/**
 * An account for gas only: authorizations name their payee, so it cannot redirect money.
 * @param privateKey 32 bytes as 0x-hex
 */
export async function createRelayer(rpc: Rpc, chainId: number, privateKey: string, fees: Pick<FeeWatch, 'current'>) {
  const key = await prepareKey(privateKey);
  const address = lowerHex(key.address);
  const client = clientOver(rpc.call);
  const inTurn = turns();
  const broadcast = async (raw: string): Promise<void> =>
    void (await sendRawTransaction(client, { serializedTransaction: lowerHex(raw) }));
  const sent = createSentTransactions(broadcast);

  /** Asks for the count each time: it shows lost transactions, and those that others sent. */
  const nextPlace = async (): Promise<Place> => {
    const [pending, current] = await Promise.all([
      getTransactionCount(client, { address, blockTag: 'pending' }),
      fees.current(),
    ]);
    return { number: await sent.nextNumber(pending), fees: current };
  };
  const sameNumber = async ({ number, raw, fees: offered }: Sent): Promise<Place> => {
    if (!sent.holds(number, raw)) throw new NumberTaken(number);
    const current = await fees.current();
    const more = raised(offered, current);
    if (isTooMuch(more, current)) throw new FeesAtLimit(number);
    return { number, fees: more };
  };
  const keepSigned = async (call: RelayedCall, place: Place, writeAhead: KeepSigned): Promise<Signed> => {
    const { number, fees: offered } = place;
    const signed = signTransaction({ ...call, ...offered, chainId, number }, key);
    const instead = await writeAhead(signed);
    return instead === undefined ? signed : keepSigned(instead, place, writeAhead);
  };
  const attempt = async (
    call: RelayedCall,
    writeAhead: KeepSigned,
    placeOf: () => Promise<Place>,
    earlier?: Sent,
  ): Promise<Sending> => {
    let place: Place;
    let signed: Signed;
    try {
      place = await placeOf();
      signed = await keepSigned(call, place, writeAhead);
    } catch (cause) {
      return { kind: 'unsent', cause };
    }
    const { hash, raw } = signed;
    const { number } = place;
    try {
      await broadcast(raw);
    } catch (cause) {
      const exclusion = exclusionOf(cause);
      if (exclusion !== undefined) return { kind: 'excluded', hash, number, exclusion, cause };
      // The pool has the earlier transaction: its bytes remain the ones to send again.
      if (earlier !== undefined && isUnderpriced(cause)) return { ...earlier, hash, fees: place.fees };
      // Not added to `sent`: the next count of the node shows whether it has this transaction.
      if (!isKnown(cause)) return { kind: 'unclear', hash, cause };
    }
    sent.add(number, raw);
    return { kind: 'sent', hash, raw, ...place };
  };

  return {
    /** Lower case 0x-hex. */
    address: key.address,
    /**
     * Signs, writes ahead, broadcasts. A number is taken only when all transactions before it are
     * sent, and those that the node lost are sent again, so no gap holds up the following ones.
     */
    send: (call: RelayedCall, writeAhead: KeepSigned) => inTurn(() => attempt(call, writeAhead, nextPlace)),
    /**
     * Offers more for the number of an earlier transaction. `sent` also where the node calls it
     * underpriced: then the earlier one is in its pool, and the next offer is higher. `unsent` with
     * NumberTaken where another one has it, with FeesAtLimit where it offers too much.
     */
    replace: (earlier: Sent, call: RelayedCall, writeAhead: KeepSigned) =>
      inTurn(() => attempt(call, writeAhead, () => sameNumber(earlier), earlier)),
    /** The balance of the relayer and its next gas price. @throws when the node does not answer */
    async funds(): Promise<RelayerFunds> {
      const [balance, { maxFeePerGas }] = await Promise.all([getBalance(client, { address }), fees.current()]);
      return { balance, maxFeePerGas };
    },
  };
}

/** At least an eighth above what was offered, and what a new transaction would offer. */
function raised(offered: Fees, current: Fees): Fees {
  const above = (old: bigint, now: bigint): bigint => {
    const more = (old * RAISED.by + RAISED.of - 1n) / RAISED.of;
    return more > now ? more : now;
  };
  return {
    maxPriorityFeePerGas: above(offered.maxPriorityFeePerGas, current.maxPriorityFeePerGas),
    maxFeePerGas: above(offered.maxFeePerGas, current.maxFeePerGas),
  };
}

/**
 * Whether both fees are above the limit. Nodes replace a transaction only when both fees rise, so
 * both may rise while one of them is below it. A fee of 0 counts as above: a raise leaves it 0.
 */
function isTooMuch(offered: Fees, current: Fees): boolean {
  const isAbove = (one: bigint, now: bigint): boolean => one === 0n || one > MOST_RAISED * now;
  return (
    isAbove(offered.maxFeePerGas, current.maxFeePerGas) &&
    isAbove(offered.maxPriorityFeePerGas, current.maxPriorityFeePerGas)
  );
}

/** Runs tasks one after another: each send needs the nonce after that of the last one. */
function turns(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return function inTurn(task) {
    const mine = last.then(task);
    last = mine.catch(() => undefined);
    return mine;
  };
}

/** Most remembered transactions, above the number under way; the oldest is forgotten first. */
export const REMEMBERED_TRANSACTIONS = 128;
/** Most characters of them in all: a full batch has 90,000. */
export const REMEMBERED_CHARACTERS = 4_194_304;
/** How long a node may lag behind others of the same network, milliseconds: a few blocks. */
export const NODE_LAG_MS = 5_000;

/** Error texts of geth and its kin, of reth and anvil, Nethermind, Besu and Erigon. */

const KNOWN = /already ?(?:known|imported)|known transaction/i;

/** Another transaction of the number is in the pool, and this one does not offer enough more. */
const UNDERPRICED =
  /replacement.{0,20}underpriced|underpriced.{0,20}replacement|replacement ?not ?allowed|could not replace/i;

const OUTRUN = /nonce.{0,10}too.?low|old ?nonce/i;
const UNFUNDED = /insufficient ?(?:funds|balance)|upfront cost exceeds/i;
const SHORT_OF_GAS = /intrinsic.?gas|floor data gas/i;

/** @throws RpcRefusal when the node refuses the bytes, other errors when no answer came */
type Broadcast = (raw: string) => Promise<void>;

/**
 * The transactions of one account that a node took, by their numbers. Those of other processes with
 * this account are unknown: where the node lacks one, it may only lag.
 */
export function createSentTransactions(broadcast: Broadcast, now: () => number = () => performance.now()) {
  const sent = new Map<number, string>();
  let characters = 0;
  let next = 0;
  let missingSince: number | undefined;

  const forget = (number: number): void => {
    characters -= sent.get(number)?.length ?? 0;
    sent.delete(number);
  };
  const mayLag = (): boolean => {
    missingSince ??= now();
    return now() - missingSince < NODE_LAG_MS;
  };
  /** The first number below `next` that the node leaves free; undefined when there is none. */
  const firstFree = async (pending: number): Promise<number | undefined> => {
    for (let number = pending; number < next; number += 1) {
      const raw = sent.get(number);
      if (raw === undefined) return mayLag() ? undefined : number;
      const taking = await sendAgain(broadcast, raw);
      missingSince = undefined;
      if (taking === 'refused') return number;
      // Some nodes do not count waiting transactions: a node with this one has those behind it.
      if (taking === 'known') return undefined;
    }
    missingSince = undefined;
    return undefined;
  };

  return {
    add(number: number, raw: string): void {
      forget(number);
      sent.set(number, raw);
      characters += raw.length;
      next = Math.max(next, number + 1);
      for (const oldest of sent.keys()) {
        if (sent.size <= REMEMBERED_TRANSACTIONS && characters <= REMEMBERED_CHARACTERS) break;
        forget(oldest);
      }
    },
    /** Whether these bytes are what was sent last under this number. */
    holds: (number: number, raw: string) => sent.get(number) === raw,
    /**
     * The number of the next transaction. A node that counts fewer than were sent has lost
     * transactions (a reorganisation, a restart) or is behind. It gets the missing ones again: the
     * same bytes change nothing twice, while another transaction of the same number would replace
     * what may still be on its way. A number is used anew where the node refuses its transaction,
     * or lacks an unknown one for `NODE_LAG_MS`; the chain then decides its settlement.
     * @param pending How many transactions of the account the node counts.
     * @throws when the node does not answer
     */
    async nextNumber(pending: number): Promise<number> {
      const free = await firstFree(pending);
      if (free === undefined) return Math.max(pending, next);
      for (let number = free; number < next; number += 1) forget(number);
      next = free;
      missingSince = undefined;
      return free;
    },
  };
}

/** `known`: the node has one of this number. `outrun`: the number is used up in its blocks. */
async function sendAgain(broadcast: Broadcast, raw: string): Promise<'taken' | 'known' | 'outrun' | 'refused'> {
  try {
    await broadcast(raw);
    return 'taken';
  } catch (error) {
    if (!(error instanceof RpcRefusal)) throw error;
    if (isKnown(error) || isUnderpriced(error)) return 'known';
    return exclusionOf(error) === 'outrun' ? 'outrun' : 'refused';
  }
}

/**
 * The reason of a node that certainly keeps nothing of a transaction: its sender cannot pay for it,
 * its gas limit is below what its bytes cost, or a transaction in the node's blocks has its number.
 * `outrun` does not show which one.
 */
export type Exclusion = 'unfunded' | 'short_of_gas' | 'outrun';

/** Undefined where a transaction may be on its way: after every answer not known to exclude it. */
export function exclusionOf(error: unknown): Exclusion | undefined {
  if (!(error instanceof RpcRefusal) || isKnown(error)) return undefined;
  if (UNFUNDED.test(error.message)) return 'unfunded';
  if (SHORT_OF_GAS.test(error.message)) return 'short_of_gas';
  return OUTRUN.test(error.message) ? 'outrun' : undefined;
}

/** The node has these bytes already, which is as good as taking them. */
export function isKnown(error: unknown): boolean {
  return error instanceof RpcRefusal && KNOWN.test(error.message);
}

/**
 * The pool holds a transaction of this nonce at a similar fee; in a replacement it is our earlier
 * one.
 */
export function isUnderpriced(error: unknown): boolean {
  return error instanceof RpcRefusal && UNDERPRICED.test(error.message);
}

/** Offered to the block producer when the node suggests nothing, wei. */
const DEFAULT_TIP_WEI = 1_000_000_000n;
/** The base fee may double (six full blocks) before a transaction is left out. */
const BASE_FEE_FACTOR = 2n;
/** How long a block that was seen gives the price, milliseconds. */
export const HEAD_FRESH_MS = 1_000;
/** How long a suggested tip holds, milliseconds. */
export const TIP_FRESH_MS = 30_000;

export type FeeWatch = ReturnType<typeof watchFees>;

interface FeeWatchDeps {
  readonly client: Client;
  /** Reads the newest block. */
  readonly head: () => Promise<Head>;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** Gives current fees; reads a block only when `saw` had none for `HEAD_FRESH_MS`. */
export function watchFees({ client, head, now = () => performance.now() }: FeeWatchDeps) {
  let seen: { readonly baseFee: bigint; readonly at: number } | undefined;
  let tip: { readonly wei: bigint; readonly at: number } | undefined;
  const saw = ({ baseFee }: Head): void => {
    seen = { baseFee, at: now() };
  };
  const baseFee = async (): Promise<bigint> => {
    if (seen === undefined || now() - seen.at >= HEAD_FRESH_MS) saw(await head());
    return seen?.baseFee ?? 0n;
  };
  const currentTip = async (): Promise<bigint> => {
    if (tip === undefined || now() - tip.at >= TIP_FRESH_MS) tip = { wei: await suggestedTip(client), at: now() };
    return tip.wei;
  };
  return {
    /** Notes the newest block. */
    saw,
    /** The fees of a transaction that is sent now. @throws when the node does not answer */
    async current(): Promise<Fees> {
      const [base, maxPriorityFeePerGas] = await Promise.all([baseFee(), currentTip()]);
      return { maxPriorityFeePerGas, maxFeePerGas: BASE_FEE_FACTOR * base + maxPriorityFeePerGas };
    },
  };
}

/** Not every node has this method. */
async function suggestedTip(client: Client): Promise<bigint> {
  try {
    return hexToBigInt(await client.request({ method: 'eth_maxPriorityFeePerGas' }));
  } catch (error) {
    if (error instanceof RpcRefusal) return DEFAULT_TIP_WEI;
    throw error;
  }
}

/** Below this many transfers at the present price, readiness warns. */
export const LOW_GAS_TRANSFERS = 10;

/** How long a relayer counts as short without another reading: the Retry-After of its buyers. */
export const LOOK_AGAIN_MS = 1_000;

/** The balance of a relayer, wei, and the highest price of one unit of gas now. */
export interface RelayerFunds {
  readonly balance: bigint;
  readonly maxFeePerGas: bigint;
}

/** How many transfers of accounts the relayer can pay at the highest price now. */
export function transfersPaidBy({ balance, maxFeePerGas }: RelayerFunds): number {
  return maxFeePerGas === 0n ? Number.MAX_SAFE_INTEGER : Number(balance / (ACCOUNT_GAS * maxFeePerGas));
}

/** @param now Milliseconds of a monotonic clock. */
export function watchFunds(read: () => Promise<RelayerFunds>, now: () => number = () => performance.now()) {
  let known: RelayerFunds | undefined;
  let knownAt = 0;
  let refused = false;
  let looking: Promise<RelayerFunds> | undefined;

  const look = (): Promise<RelayerFunds> => {
    // Concurrent calls share one reading.
    looking ??= read()
      .then((funds) => {
        known = funds;
        refused = false;
        return funds;
      })
      .finally(() => {
        knownAt = now();
        looking = undefined;
      });
    return looking;
  };
  const short = (gas: bigint): boolean => refused || (known !== undefined && known.balance < gas * known.maxFeePerGas);

  return {
    /** Reads now. @throws when the node does not answer */
    look,
    /**
     * Whether a transaction with this gas limit is known not to be payable. Reads only the first
     * time, and once a second while funds are short: enough funds cost no call. A node that does
     * not answer proves nothing.
     */
    async isShort(gas: bigint): Promise<boolean> {
      const stale = known === undefined || (short(gas) && now() - knownAt >= LOOK_AGAIN_MS);
      if (stale) await look().catch(() => undefined);
      return short(gas);
    },
    /** Notes that a node refused a transaction for want of funds, maybe for others in its pool. */
    refused(): void {
      refused = true;
      knownAt = now();
    },
  };
}
