/** Looks for new blocks and for the receipts in them, once for all transactions under way. */

import type { Client } from 'viem';
import { type Head, readBlockReceipts, readReceipt, type TransactionReceipt } from '../chain/client.ts';
import { lacksMethod, type Rpc } from '../chain/rpc.ts';

/** The first pause where blocks follow a transaction at once, milliseconds; it doubles. */
const FIRST_PAUSE_MS = 5;
/** Bounds of the pauses where blocks come by time, milliseconds, and looks in the time of one. */
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

/** What one look showed. */
export interface Look {
  /** Undefined when the node did not answer. */
  readonly head: Head | undefined;
  /** By hash, of those that were awaited and are in a block. */
  readonly receipts: ReadonlyMap<string, TransactionReceipt>;
  /** Whether all receipts were asked for: then one that is missing is in no block. */
  readonly complete: boolean;
}

interface BlockWatch {
  /** Looks again and again while something is awaited, and soon after this. */
  begin(): void;
}

/** The pause between two looks. */
interface Pause {
  /** Resolves after so many milliseconds, or when it is ended. */
  begin(ms: number): Promise<void>;
  end(): void;
}

interface BlockWatchDeps {
  readonly client: Client;
  readonly call: Rpc['call'];
  /** Reads the newest block. */
  readonly head: () => Promise<Head>;
  /** The hashes of the transactions under way. */
  readonly awaited: () => readonly string[];
  readonly looked: (look: Look) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Another in tests that say when to look. */
  readonly pause?: Pause;
}

export function watchBlocks(deps: BlockWatchDeps): BlockWatch {
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
    begin() {
      if (pace.begin()) pause.end();
      if (!running) void run();
    },
  };
}

/** Keeps no process running: that is for what waits for the outcomes. */
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

/** Those of many transactions are read by block, where the node can and it is the next one. */
function receiptReader({ client, call }: Pick<BlockWatchDeps, 'client' | 'call'>, now: () => number): ReadReceipts {
  let byBlockFrom = Number.NEGATIVE_INFINITY;
  const ofBlock = async (
    transactions: readonly string[],
    block: bigint,
  ): Promise<readonly TransactionReceipt[] | undefined> => {
    try {
      return await readBlockReceipts(call, block, transactions);
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
