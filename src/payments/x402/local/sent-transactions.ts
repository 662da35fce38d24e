import { RpcRefusal } from '../chain/rpc.ts';

/**
 * What a node's answer to a broadcast is worth: words of geth and its kin, of reth and anvil,
 * Nethermind, Besu and Erigon.
 */

const KNOWN = /already ?(?:known|imported)|known transaction/i;
const OUTRUN = /nonce.{0,10}too.?low|old ?nonce/i;
const UNFUNDED = /insufficient ?(?:funds|balance)|upfront cost exceeds/i;
const SHORT_OF_GAS = /intrinsic.?gas|floor data gas/i;

/**
 * Why a node certainly keeps nothing of a transaction: its sender cannot pay for it, its gas limit
 * is below what its bytes cost, or its number is used up in the node's blocks. The last one alone
 * does not say by what.
 */
export type Exclusion = 'unfunded' | 'short_of_gas' | 'outrun';

/**
 * Undefined where the transaction may be on its way all the same, which is so after every answer
 * that is not known to exclude it.
 */
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
 * Most transactions that can be sent again: more than are under way at a time. The oldest is
 * forgotten first.
 */
export const REMEMBERED_TRANSACTIONS = 128;
/** How long a node may count less than others of the same network, milliseconds: a few blocks. */
export const NODE_LAG_MS = 5_000;

/**
 * Gives bytes to a node. @throws RpcRefusal when it does not want them, other errors when no answer
 * came
 */
type Broadcast = (raw: string) => Promise<void>;

/** The transactions of one account that a node took, by their numbers. */
interface SentTransactions {
  add(number: number, raw: string): void;
  /**
   * The number of the next transaction. A node that counts less than was sent has lost transactions
   * (a reorganisation, a restart) or is behind; it gets the missing ones again, because the same
   * bytes change nothing twice, while another transaction of the same number would push out what
   * may still be on its way. Only a number that the node refuses to fill so is used anew: the
   * settlement it belonged to is then decided by what the chain shows, as every other.
   * @param pending How many transactions of the account the node counts.
   * @throws when the node does not answer
   */
  nextNumber(pending: number): Promise<number>;
}

/**
 * Numbers of other processes with the same account are not known here: a count below them is a lag,
 * for so long as one may last.
 */
export function createSentTransactions(
  broadcast: Broadcast,
  now: () => number = () => performance.now(),
): SentTransactions {
  const sent = new Map<number, string>();
  let next = 0;
  let missingSince: number | undefined;

  const mayLag = (): boolean => {
    missingSince ??= now();
    return now() - missingSince < NODE_LAG_MS;
  };
  /**
   * The first number below `next` that the node cannot be brought to count; undefined when there is
   * none.
   */
  const firstFree = async (pending: number): Promise<number | undefined> => {
    for (let number = pending; number < next; number += 1) {
      const raw = sent.get(number);
      if (raw === undefined) return mayLag() ? undefined : number;
      const taking = await sendAgain(broadcast, raw);
      missingSince = undefined;
      if (taking === 'refused') return number;
      // Some nodes leave what waits out of their count: one that has this transaction has those
      // behind it.
      if (taking === 'known') return undefined;
    }
    missingSince = undefined;
    return undefined;
  };

  return {
    add(number, raw) {
      sent.set(number, raw);
      next = Math.max(next, number + 1);
      const [oldest] = sent.keys();
      if (sent.size > REMEMBERED_TRANSACTIONS && oldest !== undefined) sent.delete(oldest);
    },
    async nextNumber(pending) {
      const free = await firstFree(pending);
      if (free === undefined) return Math.max(pending, next);
      for (let number = free; number < next; number += 1) sent.delete(number);
      next = free;
      missingSince = undefined;
      return free;
    },
  };
}

/** `known`: the node had it all along. `outrun`: its number is used up in the node's blocks. */
async function sendAgain(broadcast: Broadcast, raw: string): Promise<'taken' | 'known' | 'outrun' | 'refused'> {
  try {
    await broadcast(raw);
    return 'taken';
  } catch (error) {
    if (!(error instanceof RpcRefusal)) throw error;
    if (isKnown(error)) return 'known';
    return exclusionOf(error) === 'outrun' ? 'outrun' : 'refused';
  }
}
