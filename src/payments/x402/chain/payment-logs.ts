import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from '../../../json/types.ts';
import { markOf, validBeforeIn } from '../evm/calldata.ts';
import { type Head, readHead, readLogPlaces, readReceipt, readSent } from './chain-answers.ts';
import { paymentsIn, type ShownPayment, TRANSFER, topic } from './evidence.ts';
import { OversizedAnswer } from './http-json.ts';
import { type Rpc, RpcRefusal } from './rpc.ts';

/** Most blocks in one `eth_getLogs`: public nodes refuse more than 10,000. */
const BLOCKS_PER_QUERY = 9_000n;
/** Most blocks that are searched back; on the fastest chains some hours. */
export const MAX_BLOCKS_BACK = 90_000n;
/** Blocks over which the pace of the chain is measured. */
const PACE_SAMPLE = 1_000n;
/** The pace varies: look this much further back than it says. */
const PACE_MARGIN = 1.25;

/** Bounds of one `eth_getLogs`, as quantities; the newest range stays open at its end. */
interface BlockRange {
  readonly fromBlock: string;
  readonly toBlock: string;
}

/** The ranges to search from the head back to `since` (Unix seconds), newest first. */
export async function* fromBlocks(
  head: Head,
  since: number,
  blockAt: (number: bigint) => Promise<Head>,
): AsyncGenerator<BlockRange> {
  const first = head.number <= BLOCKS_PER_QUERY ? 0n : await firstBlock(head, since, blockAt);
  for (let end = head.number; end >= first; end -= BLOCKS_PER_QUERY) {
    const begin = end - BLOCKS_PER_QUERY + 1n;
    yield {
      fromBlock: quantity(begin > first ? begin : first),
      toBlock: end === head.number ? 'latest' : quantity(end),
    };
  }
}

/**
 * A block that is not younger than `since`, estimated from the pace of the last thousand blocks.
 */
async function firstBlock(head: Head, since: number, blockAt: (number: bigint) => Promise<Head>): Promise<bigint> {
  const sample = await blockAt(head.number - PACE_SAMPLE);
  const elapsed = Math.max(1, head.timestamp - sample.timestamp);
  const blocks = BigInt(Math.ceil((Math.max(0, head.timestamp - since) / elapsed) * Number(PACE_SAMPLE) * PACE_MARGIN));
  const back = blocks > MAX_BLOCKS_BACK ? MAX_BLOCKS_BACK : blocks;
  return back >= head.number ? 0n : head.number - back;
}

/**
 * The first block that is not older than `since` (Unix seconds), found by halving; one past the
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

/** A number as nodes read it. */
export function quantity(value: bigint): string {
  return `0x${value.toString(16)}`;
}

/**
 * Longest wait for one answer, milliseconds: a search through thousands of blocks takes a node
 * longer than a look at one.
 */
const SCAN_DEADLINE_MS = 30_000;
/** Pauses before a question is put again to a node that failed or wants us slower, milliseconds. */
const PAUSES_MS: readonly number[] = [200, 1_000, 5_000];

/** A payment with its place on the chain. `time` in Unix seconds, of its block. */
export interface ChainPayment extends ShownPayment {
  readonly transaction: string;
  readonly time: number;
  /**
   * Until when it was authorized, Unix seconds; undefined where the transaction does not spell the
   * authorization out.
   */
  readonly validBefore: bigint | undefined;
  /** Who sent the transaction, lower case; undefined when the node does not show it. */
  readonly sender: string | undefined;
  /** Whether its calldata carries the mark of a record (`markOf`). */
  readonly marked: boolean;
}

/** What to search: from block to block, both included. */
interface PaymentSearch {
  readonly asset: string;
  readonly payTo: string;
  readonly first: bigint;
  readonly last: bigint;
  /** Most blocks of one question; fewer in tests. */
  readonly blocksPerQuery?: bigint;
}

/**
 * Every payment to the payee in these blocks, oldest first. Its `Transfer` is what is searched for,
 * because the payee is indexed there and a public node lists no more than some thousand logs; the
 * receipt then shows whether an authorization was used for it.
 * @param onRange is told the last block that was searched
 * @throws when the node does not answer, also after a few pauses
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
      // Nodes limit blocks, logs and bytes, and each says so in words of its own.
      if (!isTooMuch(error) || begin === end) throw error;
      blocks = (end - begin + 1n) / 2n;
      continue;
    }
    yield* paymentsOf(ask, { asset, payTo }, readLogPlaces(logs));
    onRange(end);
    begin = end + 1n;
    // Back to longer ranges, slowly: the limit may have been the many logs of one place.
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

/** Asks again after a pause where that may help. */
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

/** Asking for less would help, asking again would not. */
function isTooMuch(error: unknown): boolean {
  if (error instanceof OversizedAnswer) return true;
  return error instanceof RpcRefusal && !/rate|too many requests|throttl|capacity/i.test(error.message);
}
