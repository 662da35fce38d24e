/**
 * Finds every payment to the payee in a range of blocks, for `acg reconcile --from-chain`, and
 * makes the receipts of those that only the chain shows.
 */

import { type Client, type Log, withRetry } from 'viem';
import { getLogs } from 'viem/actions';
import { getAbiItem, getAddress } from 'viem/utils';
import type { Receipt } from '../../../receipts/receipt.ts';
import { paymentReceiptId } from '../../ledger/payment-receipt.ts';
import { formatAmount } from '../../pricing/amount.ts';
import { ASSET_ABI, lowerHex, markOf, validBeforeIn } from '../evm/eip3009.ts';
import { replayKey, VALID_BEFORE_EXCESS_SECONDS } from '../wire/proof.ts';
import type { X402Config } from '../wire/settings.ts';
import { BLOCKS_PER_QUERY, paymentsIn, type ShownPayment } from './chain.ts';
import { OversizedAnswer } from './http-json.ts';
import { clientOver, type Head, type Rpc, RpcRefusal, readHead, readReceipt } from './node.ts';

/** Longest wait for one answer, milliseconds: nodes need long for thousands of blocks. */
const SCAN_DEADLINE_MS = 30_000;
/** Pauses before a call is repeated to a node that failed or limits the rate, milliseconds. */
const PAUSES_MS: readonly number[] = [200, 1_000, 5_000];
const TRANSFER = getAbiItem({ abi: ASSET_ABI, name: 'Transfer' });

/** A payment and its transaction. `time`: that of its block, Unix seconds. */
export interface ChainPayment extends ShownPayment {
  readonly transaction: string;
  readonly time: number;
  /** End of its authorization, Unix seconds; undefined where the calldata lacks it. */
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
 * Every payment to the payee in these blocks, oldest first. The search is for `Transfer`, which has
 * the payee in its index: a public node lists some thousand logs at most. The receipt of each shows
 * whether an authorization made the transfer.
 * @param onRange gets the last block that was searched
 * @throws when the node does not answer, also after pauses
 */
export async function* paymentsTo(
  rpc: Rpc,
  { asset, payTo, first, last, blocksPerQuery = BLOCKS_PER_QUERY }: PaymentSearch,
  onRange: (searched: bigint) => void = () => undefined,
): AsyncGenerator<ChainPayment> {
  const client = clientOver(patiently(rpc));
  const moves = { address: lowerHex(asset), event: TRANSFER, args: { to: lowerHex(payTo) } } as const;
  let blocks = blocksPerQuery;
  for (let begin = first; begin <= last; ) {
    const end = begin + blocks - 1n < last ? begin + blocks - 1n : last;
    let logs: readonly MinedLog[];
    try {
      logs = await getLogs(client, { ...moves, fromBlock: begin, toBlock: end });
    } catch (error) {
      // Nodes limit blocks, logs and bytes, each with its own message.
      if (!isTooMuch(error) || begin === end) throw error;
      blocks = (end - begin + 1n) / 2n;
      continue;
    }
    yield* paymentsOf(client, { asset, payTo }, logs);
    onRange(end);
    begin = end + 1n;
    // Ranges grow again slowly: the limit may come from many logs in a few blocks.
    const longer = blocks + blocks / 8n + 1n;
    blocks = longer < blocksPerQuery ? longer : blocksPerQuery;
  }
}

type MinedLog = Log<bigint, number, false>;

async function* paymentsOf(
  client: Client,
  terms: { readonly asset: string; readonly payTo: string },
  logs: readonly MinedLog[],
): AsyncGenerator<ChainPayment> {
  const blockOf = new Map(logs.map(({ transactionHash, blockNumber }) => [transactionHash, blockNumber]));
  const times = new Map<bigint, number>();
  for (const [transaction, number] of blockOf) {
    const receipt = await readReceipt(client, transaction);
    if (receipt === undefined) throw new Error(`the chain node shows a log of ${transaction} and not its receipt`);
    const shown = paymentsIn(receipt, terms);
    if (shown.length === 0) continue;
    const time = times.get(number) ?? (await readHead(client, number)).timestamp;
    times.set(number, time);
    const sent = await client.request({ method: 'eth_getTransactionByHash', params: [transaction] });
    const input = sent?.input ?? '0x';
    const place = { transaction, time, sender: sent?.from };
    for (const payment of shown) {
      const marked = markOf(input, payment) !== undefined;
      yield { ...payment, ...place, marked, validBefore: validBeforeIn(input, { ...payment, payTo: terms.payTo }) };
    }
  }
}

/** Repeats calls after a pause where that may help. */
function patiently(rpc: Rpc): Rpc['call'] {
  const delay = ({ count }: { readonly count: number }): number => PAUSES_MS[count] ?? 0;
  const shouldRetry = ({ error }: { readonly error: Error }): boolean => !isTooMuch(error);
  return (method, params) =>
    withRetry(() => rpc.call(method, params, SCAN_DEADLINE_MS), { delay, retryCount: PAUSES_MS.length, shouldRetry });
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

/** A price that a payment may have been for. `units` in base units. */
export interface Price {
  readonly resourceId: string;
  /** The lowest, where the price follows the input. */
  readonly units: bigint;
  readonly highest: bigint;
  readonly currency: string;
}

/** `resourceId` of a payment that fits no price, or more than one. */
const UNKNOWN_RESOURCE = 'unknown';

/**
 * Makes the receipt of a payment, under the id that the gateway itself gives it. The chain does not
 * tell delivery, channel and request: the receipt has defaults for them.
 * @param at when it is written
 */
export function receiptFromChain(
  payment: ChainPayment,
  terms: Pick<
    X402Config,
    'network' | 'chainId' | 'asset' | 'assetName' | 'assetDecimals' | 'payTo' | 'maxTimeoutSeconds'
  >,
  prices: readonly Price[],
  at: Date,
): Receipt {
  const { from, nonce, units, transaction, time, validBefore } = payment;
  const payId = replayKey({ chainId: terms.chainId, asset: terms.asset, from, nonce });
  const [price, another] = prices.filter((candidate) => candidate.units <= units && units <= candidate.highest);
  const { maxTimeoutSeconds } = terms;
  // The gateway accepts no proof with a later end; only payers who went past it set one.
  const latest = BigInt(time + maxTimeoutSeconds + VALID_BEFORE_EXCESS_SECONDS);
  const end = validBefore !== undefined && validBefore <= latest ? Number(validBefore) : time + maxTimeoutSeconds;
  return {
    id: paymentReceiptId(payId, end, maxTimeoutSeconds),
    requestId: `chain_${payId.slice(0, 32)}`,
    resourceId: price !== undefined && another === undefined ? price.resourceId : UNKNOWN_RESOURCE,
    protocol: 'http',
    at: at.toISOString(),
    delivered: false,
    backendStatus: 0,
    durationMs: 0,
    payment: {
      status: 'settled',
      provider: 'x402',
      amount: formatAmount(units, terms.assetDecimals),
      currency: price?.currency ?? prices[0]?.currency ?? terms.assetName,
      network: terms.network,
      asset: terms.asset,
      payer: getAddress(from as `0x${string}`),
      payee: terms.payTo,
      externalReference: transaction,
      replayKey: payId,
      settledAt: new Date(time * 1_000).toISOString(),
    },
    metadata: { recovered: 'chain' },
  };
}
