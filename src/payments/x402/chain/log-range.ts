import type { Head } from './chain-answers.ts';

/** Most blocks in one `eth_getLogs`: public nodes refuse more than 10,000. */
export const BLOCKS_PER_QUERY = 9_000n;
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

/** A block that is not younger than `since`, estimated from the pace of the last thousand blocks. */
async function firstBlock(head: Head, since: number, blockAt: (number: bigint) => Promise<Head>): Promise<bigint> {
  const sample = await blockAt(head.number - PACE_SAMPLE);
  const elapsed = Math.max(1, head.timestamp - sample.timestamp);
  const blocks = BigInt(Math.ceil((Math.max(0, head.timestamp - since) / elapsed) * Number(PACE_SAMPLE) * PACE_MARGIN));
  const back = blocks > MAX_BLOCKS_BACK ? MAX_BLOCKS_BACK : blocks;
  return back >= head.number ? 0n : head.number - back;
}

/**
 * The first block that is not older than `since` (Unix seconds), found by halving; one past the head when there is none.
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
