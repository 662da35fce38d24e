/** Reads from a chain node what became of an authorization; nothing here moves money. */

import type { Client, Hex } from 'viem';
import { getCode } from 'viem/actions';
import { encodeEventTopics, formatLog, isAddressEqual, numberToHex, parseEventLogs } from 'viem/utils';
import { ASSET_ABI, lowerHex } from '../evm/calldata.ts';
import { EXPIRED, NONCE_ALREADY_USED as SPENT } from '../wire/reasons.ts';
import { askAsset, clientOver, type Head, readHead, readReceipt, type TransactionReceipt } from './client.ts';
import { type ExpectedPayment, findPayment } from './evidence.ts';
import { nodeFailure, READING_DEADLINE_MS, type Rpc } from './rpc.ts';

/** Most blocks in one `eth_getLogs`: public nodes refuse more than 10,000. */
export const BLOCKS_PER_QUERY = 9_000n;
/** Most blocks that are searched back; on the fastest chains some hours. */
export const MAX_BLOCKS_BACK = 90_000n;
/** Blocks over which the pace of the chain is measured. */
const PACE_SAMPLE = 1_000n;
/** Factor for the search, because the pace varies. */
const PACE_MARGIN = 1.25;
const UNLOGGED = 'the nonce is spent, its log was not found';
/** The events that end an authorization. */
const SPENDING = ['AuthorizationUsed', 'AuthorizationCanceled'] as const;

/** An authorization to look up. */
export interface EvidenceQuery extends ExpectedPayment {
  /** Unix seconds: from here on the asset refuses the authorization. */
  readonly validBefore: number;
  /** Unix seconds: it was not used before. Bounds the search for its log. */
  readonly since: number;
  /** The transaction of an earlier attempt, when one is known. */
  readonly knownTransaction?: string | undefined;
  /** The known transaction tried several authorizations: its success is not that of each. */
  readonly inBatch?: boolean;
}

/**
 * What the chain shows. `paid`: by this transaction, whichever account sent it. `worthless`: spent
 * on something else, cancelled or expired unused, so it can never pay us any more. `open`: unspent
 * and still valid at `headTime` (Unix seconds); `failed` when the known transaction is in a block,
 * at or before that time, and moved nothing. `unknown`: no reading; `logsMissing` when the
 * authorization is spent, the known transaction succeeded without any log of the asset, and the
 * search does not have the log that one of them must have.
 */
export type Evidence =
  | { readonly kind: 'paid'; readonly transaction: string }
  | { readonly kind: 'worthless'; readonly reason: WorthlessReason; readonly transaction?: string }
  | { readonly kind: 'open'; readonly headTime: number; readonly failed?: true }
  | { readonly kind: 'unknown'; readonly cause: string; readonly logsMissing?: true };

type WorthlessReason = typeof SPENT | typeof EXPIRED;

export interface Chain {
  /** Never rejects: a failing node gives `unknown`. `onHead` gets the newest block. */
  readEvidence(query: EvidenceQuery, deadlineMs?: number, onHead?: (head: Head) => void): Promise<Evidence>;
  /** @throws when the node does not answer */
  hasCode(address: string): Promise<boolean>;
  /** @throws when the node does not answer */
  head(): Promise<Head>;
}

/**
 * Readings through one node.
 * @param confirmations Blocks that must hold a conclusion, its own included: until then it is
 * `unknown`, because a reorganisation could take it back.
 */
export function createChain(rpc: Rpc, confirmations = 1): Chain {
  const client = clientOver(rpc.call);
  return {
    async readEvidence(query, deadlineMs = READING_DEADLINE_MS, onHead = () => undefined) {
      const ends = performance.now() + deadlineMs;
      const within: Rpc['call'] = (method, params) => rpc.call(method, params, Math.max(1, ends - performance.now()));
      try {
        return await readEvidence(clientOver(within), query, { onHead, above: BigInt(confirmations - 1) });
      } catch (error) {
        return { kind: 'unknown', cause: nodeFailure(error) };
      }
    },
    hasCode: async (address) => (await getCode(client, { address: lowerHex(address) })) !== undefined,
    head: () => readHead(client),
  };
}

interface Depth {
  readonly onHead: (head: Head) => void;
  /** Blocks that must stand on the one that shows something. */
  readonly above: bigint;
}

async function readEvidence(client: Client, query: EvidenceQuery, { onHead, above }: Depth): Promise<Evidence> {
  const { asset, from, nonce, knownTransaction } = query;
  const known = knownTransaction === undefined ? undefined : await readReceipt(client, knownTransaction);
  const shown = known === undefined ? undefined : judge(known, query);
  if (shown !== undefined && above === 0n) return shown;

  // Head first, then the state *at* it: unspent in a block past validBefore is unspent for ever.
  const head = await readHead(client);
  onHead(head);
  if (known !== undefined && shown !== undefined) return onceDeep(shown, known, head, above);
  const authorization = [lowerHex(from), lowerHex(nonce)] as const;
  const state = await askAsset(client, asset, 'authorizationState', authorization, numberToHex(head.number));
  if (state !== 0n) {
    const found = await findSpending(client, query, head, above);
    return (
      found ?? { kind: 'unknown', cause: UNLOGGED, ...(known && lacksLogs(known, asset) ? { logsMissing: true } : {}) }
    );
  }
  if (head.timestamp >= query.validBefore) return expired(client, query, head, above);
  // A head below the block of the receipt does not show the state after it.
  const isOver = known !== undefined && known.blockNumber <= head.number;
  const failed = isOver && (known.status === 'reverted' || query.inBatch === true);
  return { kind: 'open', headTime: head.timestamp, ...(failed ? { failed } : {}) };
}

/** A batch in which others paid has its logs, although it succeeded without this one. */
function lacksLogs({ status, logs }: TransactionReceipt, asset: string): boolean {
  return status === 'success' && !logs.some(({ address }) => isAddressEqual(address, lowerHex(asset)));
}

/** What a receipt shows, once enough blocks confirm it. */
function onceDeep(shown: Evidence, { blockNumber }: TransactionReceipt, head: Head, above: bigint): Evidence {
  const stand = head.number - blockNumber;
  return stand >= above ? shown : { kind: 'unknown', cause: `shown by a block with ${stand} of ${above} above it` };
}

/** Expired unspent, once a confirmed block is past the end too. */
async function expired(client: Client, query: EvidenceQuery, head: Head, above: bigint): Promise<Evidence> {
  const stays = above === 0n ? head : await readHead(client, head.number > above ? head.number - above : 0n);
  if (stays.timestamp >= query.validBefore) return { kind: 'worthless', reason: EXPIRED };
  return { kind: 'unknown', cause: 'unspent at its end, in too few blocks' };
}

/**
 * Use and cancellation are both logged with payer and nonce, so there is at most one log to find.
 * Undefined when none was found: the index of logs may lag behind the state, or the search may be
 * too short, so that does not prove a cancellation.
 */
async function findSpending(
  client: Client,
  query: EvidenceQuery,
  head: Head,
  above: bigint,
): Promise<Evidence | undefined> {
  const args = { authorizer: lowerHex(query.from), nonce: lowerHex(query.nonce) };
  const [, ...indexed] = encodeEventTopics({ abi: ASSET_ABI, eventName: 'AuthorizationUsed', args });
  const topics = [SPENDING.map((eventName) => encodeEventTopics({ abi: ASSET_ABI, eventName })[0]), ...indexed];
  for await (const range of fromBlocks(head, query.since, (number) => readHead(client, number))) {
    const answer = await client.request({
      method: 'eth_getLogs',
      params: [{ address: lowerHex(query.asset), topics, ...range }],
    });
    const logs = answer.map((log) => formatLog(log));
    const [found] = parseEventLogs({ abi: ASSET_ABI, eventName: [...SPENDING], args, logs });
    if (found === undefined) continue;
    const { eventName, transactionHash: transaction } = found;
    const isCancelled = eventName === 'AuthorizationCanceled';
    const cancelled = { kind: 'worthless', reason: SPENT, transaction } as const;
    if (isCancelled && above === 0n) return cancelled;
    const receipt = await readReceipt(client, transaction);
    const shown = isCancelled ? cancelled : receipt && judge(receipt, query);
    if (receipt === undefined || shown === undefined) return { kind: 'unknown', cause: 'a log without its receipt' };
    return onceDeep(shown, receipt, head, above);
  }
  return undefined;
}

/** Undefined when the receipt does not concern the authorization. */
function judge(receipt: TransactionReceipt, query: EvidenceQuery): Evidence | undefined {
  const transaction = receipt.transactionHash;
  switch (findPayment(receipt, query)) {
    case 'paid':
      return { kind: 'paid', transaction };
    case 'elsewhere':
      return { kind: 'worthless', reason: SPENT, transaction };
    case 'unclear':
      return { kind: 'unknown', cause: `the logs of ${transaction} do not tie the transfer to this authorization` };
    case 'absent':
      return undefined;
  }
}

/** Bounds of one `eth_getLogs`, as quantities; the newest range stays open at its end. */
interface BlockRange {
  readonly fromBlock: Hex;
  readonly toBlock: Hex | 'latest';
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
      fromBlock: numberToHex(begin > first ? begin : first),
      toBlock: end === head.number ? 'latest' : numberToHex(end),
    };
  }
}

/** A block not younger than `since`, estimated from the pace of the last blocks. */
async function firstBlock(head: Head, since: number, blockAt: (number: bigint) => Promise<Head>): Promise<bigint> {
  const sample = await blockAt(head.number - PACE_SAMPLE);
  const elapsed = Math.max(1, head.timestamp - sample.timestamp);
  const blocks = BigInt(Math.ceil((Math.max(0, head.timestamp - since) / elapsed) * Number(PACE_SAMPLE) * PACE_MARGIN));
  const back = blocks > MAX_BLOCKS_BACK ? MAX_BLOCKS_BACK : blocks;
  return back >= head.number ? 0n : head.number - back;
}
