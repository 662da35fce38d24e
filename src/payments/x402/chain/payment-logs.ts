/** Finds every payment to the payee in a range of blocks, for `acg reconcile --from-chain`. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from '../../../json/types.ts';
import { markOf, validBeforeIn } from '../evm/calldata.ts';
import { BLOCKS_PER_QUERY } from './chain.ts';
import { type Head, quantity, readHead, readLogPlaces, readReceipt, readSent } from './chain-answers.ts';
import { paymentsIn, type ShownPayment, TRANSFER, topic } from './evidence.ts';
import { OversizedAnswer } from './http-json.ts';
import { type Rpc, RpcRefusal } from './rpc.ts';

/** Longest wait for one answer, milliseconds: nodes need long for thousands of blocks. */
const SCAN_DEADLINE_MS = 30_000;
/** Pauses before a call is repeated to a node that failed or limits the rate, milliseconds. */
const PAUSES_MS: readonly number[] = [200, 1_000, 5_000];

/** A payment and its transaction. `time`: that of its block, Unix seconds. */
export interface ChainPayment extends ShownPayment {
  readonly transaction: string;
  readonly time: number;
  /** Until when it was authorized, Unix seconds; undefined where the calldata lacks it. */
  readonly validBefore: bigint | undefined;
  /** Sender of the transaction, lower case; undefined when the node does not show it. */
  readonly sender: string | undefined;
  /** Whether its calldata carries the mark of a record (`markOf`). */
  readonly marked: boolean;
}

/** The blocks to search, `first` and `last` included. */
interface PaymentSearch {
  readonly asset: string;
  readonly payTo: string;
  readonly first: bigint;
  readonly last: bigint;
  /** Most blocks of one call; fewer in tests. */
  readonly blocksPerQuery?: bigint;
}

/**
 * Every payment to the payee in these blocks, oldest first. The search is for `Transfer`, because
 * the payee is indexed there and a public node lists no more than some thousand logs; the receipt
 * then shows whether an authorization was used for it.
 * @param onRange gets the last block that was searched
 * @throws when the node does not answer, also after pauses
 */
export async function* paymentsTo(
  rpc: Rpc,
  { asset, payTo, first, last, blocksPerQuery = BLOCKS_PER_QUERY }: PaymentSearch,
  onRange: (searched: bigint) => void = () => undefined,
): AsyncGenerator<ChainPayment> {
  const ask = patiently(rpc);
  const topics = [TRANSFER, null, topic(payTo)];
  let blocks = blocksPerQuery;
  for (let begin = first; begin <= last; ) {
    const end = begin + blocks - 1n < last ? begin + blocks - 1n : last;
    const range = { fromBlock: quantity(begin), toBlock: quantity(end) };
    let logs: Json;
    try {
      logs = await ask('eth_getLogs', [{ address: asset, topics, ...range }]);
    } catch (error) {
      // Nodes limit blocks, logs and bytes, each with its own message.
      if (!isTooMuch(error) || begin === end) throw error;
      blocks = (end - begin + 1n) / 2n;
      continue;
    }
    yield* paymentsOf(ask, { asset, payTo }, readLogPlaces(logs));
    onRange(end);
    begin = end + 1n;
    // Ranges grow again slowly: the limit may come from many logs in a few blocks.
    const longer = blocks + blocks / 8n + 1n;
    blocks = longer < blocksPerQuery ? longer : blocksPerQuery;
  }
}

async function* paymentsOf(
  ask: Rpc['call'],
  terms: { readonly asset: string; readonly payTo: string },
  places: ReturnType<typeof readLogPlaces>,
): AsyncGenerator<ChainPayment> {
  const blockOf = new Map(places.map(({ transactionHash, blockNumber }) => [transactionHash, blockNumber]));
  const times = new Map<bigint, number>();
  for (const [transaction, number] of blockOf) {
    const receipt = readReceipt(await ask('eth_getTransactionReceipt', [transaction]));
    if (receipt === undefined) throw new Error(`the chain node shows a log of ${transaction} and not its receipt`);
    const shown = paymentsIn(receipt, terms);
    if (shown.length === 0) continue;
    const time = times.get(number) ?? readHead(await ask('eth_getBlockByNumber', [quantity(number), false])).timestamp;
    times.set(number, time);
    const { from: sender, input = '0x' } = readSent(await ask('eth_getTransactionByHash', [transaction])) ?? {};
    const place = { transaction, time, sender, marked: markOf(input) !== undefined };
    for (const payment of shown)
      yield { ...payment, ...place, validBefore: validBeforeIn(input, { ...payment, payTo: terms.payTo }) };
  }
}

/** Repeats calls after a pause where that may help. */
function patiently(rpc: Rpc): Rpc['call'] {
  return async function ask(method, params) {
    for (const pause of PAUSES_MS) {
      try {
        return await rpc.call(method, params, SCAN_DEADLINE_MS);
      } catch (error) {
        if (isTooMuch(error)) throw error;
        await delay(pause);
      }
    }
    return rpc.call(method, params, SCAN_DEADLINE_MS);
  };
}

/** Whether a smaller range would help, and a repetition would not. */
function isTooMuch(error: unknown): boolean {
  if (error instanceof OversizedAnswer) return true;
  return error instanceof RpcRefusal && !/rate|too many requests|throttl|capacity/i.test(error.message);
}

/**
 * The first block that is not older than `since` (Unix seconds), by binary search; one past the
 * head when there is none.
 * @throws when a block cannot be read
 */
export async function firstBlockSince(
  since: number,
  head: Head,
  blockAt: (number: bigint) => Promise<Head>,
): Promise<bigint> {
  let [low, high] = [0n, head.number + 1n];
  while (low < high) {
    const middle = (low + high) / 2n;
    if ((await blockAt(middle)).timestamp >= since) high = middle;
    else low = middle + 1n;
  }
  return low;
}
