/** The relayer: the account that signs and broadcasts transactions, one at a time. */

import { getBalance, getTransactionCount, sendRawTransaction } from 'viem/actions';
import { clientOver } from '../chain/client.ts';
import type { Rpc } from '../chain/rpc.ts';
import { lowerHex } from '../evm/calldata.ts';
import { prepareKey } from '../evm/signing-key.ts';
import { type Fees, signTransaction } from '../evm/transaction.ts';
import type { FeeWatch } from './relayer-fees.ts';
import type { RelayerFunds } from './relayer-funds.ts';
import { createSentTransactions, type Exclusion, exclusionOf, isKnown, isUnderpriced } from './sent-transactions.ts';

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
 * Keeps a signed transaction before it is sent. The result is what is signed instead, under the
 * same number, when a part of it may not be sent. When it throws, nothing is sent.
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

/** A transaction offers so much already that more fees are not what it lacks. */
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

/** An account for gas only: authorizations name their payee, so it cannot redirect money. */
export interface Relayer {
  /** Lower case 0x-hex. */
  readonly address: string;
  /**
   * Signs, writes ahead, broadcasts. A number is taken only when all transactions before it are
   * out, and those that the node has lost are out again, so no gap can hold the following ones up.
   */
  send(call: RelayedCall, writeAhead: KeepSigned): Promise<Sending>;
  /**
   * Offers more for the number of an earlier transaction. `sent` also where the node calls it
   * underpriced: then the earlier one is in its pool, and the next offer is higher. `unsent` with
   * NumberTaken where another transaction has it, with FeesAtLimit where that is too much.
   */
  replace(earlier: Sent, call: RelayedCall, writeAhead: KeepSigned): Promise<Sending>;
  /** Its balance and its next gas price. @throws when the node does not answer */
  funds(): Promise<RelayerFunds>;
}

/** A number and fees for a transaction. */
interface Place {
  readonly number: number;
  readonly fees: Fees;
}

/** @param privateKey 32 bytes as 0x-hex */
export async function createRelayer(
  rpc: Rpc,
  chainId: number,
  privateKey: string,
  fees: Pick<FeeWatch, 'current'>,
): Promise<Relayer> {
  const key = await prepareKey(privateKey);
  const address = lowerHex(key.address);
  const client = clientOver(rpc.call);
  const inTurn = turns();
  const broadcast = async (raw: string): Promise<void> =>
    void (await sendRawTransaction(client, { serializedTransaction: lowerHex(raw) }));
  const sent = createSentTransactions(broadcast);

  /** The count is asked for each: it shows what the node lost, and what others sent. */
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
      // The pool has the earlier one, whose bytes stay those to send again.
      if (earlier !== undefined && isUnderpriced(cause)) return { ...earlier, hash, fees: place.fees };
      // Not counted: the next count of the node shows whether it has this transaction.
      if (!isKnown(cause)) return { kind: 'unclear', hash, cause };
    }
    sent.add(number, raw);
    return { kind: 'sent', hash, raw, ...place };
  };

  return {
    address,
    send: (call, writeAhead) => inTurn(() => attempt(call, writeAhead, nextPlace)),
    replace: (earlier, call, writeAhead) => inTurn(() => attempt(call, writeAhead, () => sameNumber(earlier), earlier)),
    async funds() {
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
 * Nodes replace a transaction only for more of both fees, so one that is too low lets both rise.
 * Zero cannot rise.
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
