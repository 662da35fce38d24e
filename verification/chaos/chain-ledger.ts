/** What the chain shows of the payments of a run. */

import type { ChainAccess } from '../../tools/local-world/chain.ts';

/** What the chain shows of one nonce. */
export type Spent = 'paid' | 'elsewhere' | 'cancelled';

/** Used nonces (lower case) and their transactions. */
export interface ChainLedger {
  readonly spent: ReadonlyMap<string, { readonly how: Spent; readonly transaction: string }>;
  /**
   * Sum of all transfers to the payee, base units: by any sender, with or without an authorization.
   */
  readonly income: bigint;
}

const USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
const CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** Blocks for each request. */
const RANGE = 2_000;

interface Log {
  readonly topics: readonly string[];
  readonly data: string;
  readonly transactionHash: string;
}

/** Reads the whole history of the token from the chain alone. */
export async function readChain(chain: ChainAccess, payTo: string, priceUnits: bigint): Promise<ChainLedger> {
  const payee = payTo.toLowerCase().slice(2);
  const isPayment = (log: Log | undefined): boolean =>
    log?.topics[0] === TRANSFER && log.topics[2]?.endsWith(payee) === true && BigInt(log.data) === priceUnits;
  const logs = await allLogs(chain);
  const spent = new Map<string, { how: Spent; transaction: string }>();
  let income = 0n;
  for (const [at, { topics, data, transactionHash: transaction }] of logs.entries()) {
    const [event, , subject = ''] = topics;
    if (event === TRANSFER && subject.endsWith(payee)) income += BigInt(data);
    if (event === CANCELED) spent.set(subject, { how: 'cancelled', transaction });
    if (event === USED) spent.set(subject, { how: isPayment(logs[at + 1]) ? 'paid' : 'elsewhere', transaction });
  }
  return { spent, income };
}

async function allLogs(chain: ChainAccess): Promise<readonly Log[]> {
  const head = Number(await chain.request('eth_blockNumber', []));
  const logs: Log[] = [];
  for (let from = 0; from <= head; from += RANGE) {
    const range = { fromBlock: hex(from), toBlock: hex(Math.min(from + RANGE - 1, head)) };
    logs.push(...((await chain.request('eth_getLogs', [{ address: chain.token.address, ...range }])) as Log[]));
  }
  return logs;
}

function hex(block: number): string {
  return `0x${block.toString(16)}`;
}
