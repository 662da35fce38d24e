/** Remembers what the relayer sent, to give it again to a node that lost it. */

import { RpcRefusal } from '../chain/rpc.ts';

/** Most remembered transactions, above the number under way; the oldest is forgotten first. */
export const REMEMBERED_TRANSACTIONS = 128;
/** Most characters of them in all: a full batch has 90,000. */
export const REMEMBERED_CHARACTERS = 4_194_304;
/** How long a node may lag behind others of the same network, milliseconds: a few blocks. */
export const NODE_LAG_MS = 5_000;

/** The words of geth and its kin, of reth and anvil, Nethermind, Besu and Erigon. */

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
 * The transactions of one account that a node took, by their numbers. Numbers of other processes
 * with this account are unknown, so a lower count may be a lag.
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
  /** The first number below `next` that the node refuses to fill; undefined when there is none. */
  const firstFree = async (pending: number): Promise<number | undefined> => {
    for (let number = pending; number < next; number += 1) {
      const raw = sent.get(number);
      if (raw === undefined) return mayLag() ? undefined : number;
      const taking = await sendAgain(broadcast, raw);
      missingSince = undefined;
      if (taking === 'refused') return number;
      // Some nodes do not count waiting transactions: one that has this has those behind it.
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
     * what may still be on its way. Only a number whose transaction the node refuses is used anew;
     * the chain then decides the settlement that it belonged to.
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
 * Why a node certainly keeps nothing of a transaction: its sender cannot pay for it, its gas limit
 * is below what its bytes cost, or its number is used up in the node's blocks. The last does not
 * show by what.
 */
export type Exclusion = 'unfunded' | 'short_of_gas' | 'outrun';

/** Undefined where it may still be on its way: after every answer not known to exclude it. */
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
