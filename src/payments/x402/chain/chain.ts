/**
 * Reads from a chain node what became of an authorization, by the logs of receipts (x402 5), and
 * tells it in the words of a rail; nothing here moves money.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Client, Hex } from 'viem';
import { encodeEventTopics, formatLog, isAddressEqual, numberToHex, parseEventLogs } from 'viem/utils';
import type { Reading, Settled, Settlement, Worthless } from '../../rail.ts';
import { ASSET_ABI, lowerHex } from '../evm/eip3009.ts';
import { VALID_BEFORE_EXCESS_SECONDS } from '../wire/proof.ts';
import { EXPIRED, NONCE_ALREADY_USED as SPENT } from '../wire/reasons.ts';
import type { PaymentRequirements, Proof } from '../wire/types.ts';
import {
  askAsset,
  clientOver,
  type Head,
  nodeFailure,
  READING_DEADLINE_MS,
  type Rpc,
  readHead,
  readReceipt,
  type TransactionReceipt,
} from './node.ts';

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
  /** The known transaction carries several authorizations: its success proves none of them. */
  readonly inBatch?: boolean;
}

/**
 * The evidence of the chain. `paid`: by this transaction, whichever account sent it. `worthless`:
 * spent on something else, cancelled or expired unused, so it can never pay us any more. `open`:
 * unspent and still valid at `headTime` (Unix seconds); `failed` when the known transaction is in a
 * block, at or before that time, and moved nothing. `unknown`: no conclusion; `logsMissing` when
 * the authorization is spent, no log shows by which transaction, and the known one succeeded
 * without any log of the asset.
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
  head(): Promise<Head>;
}

/**
 * Reads the chain through `rpc`.
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
    head: () => readHead(client),
  };
}

interface Depth {
  readonly onHead: (head: Head) => void;
  /** Blocks that must follow the one that a conclusion comes from. */
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
  // A head below the block of the receipt does not show the state after that block.
  const isOver = known !== undefined && known.blockNumber <= head.number;
  const failed = isOver && (known.status === 'reverted' || query.inBatch === true);
  return { kind: 'open', headTime: head.timestamp, ...(failed ? { failed } : {}) };
}

/** Whether a successful transaction has no log of the asset, not even one of another payment. */
function lacksLogs({ status, logs }: TransactionReceipt, asset: string): boolean {
  return status === 'success' && !logs.some(({ address }) => isAddressEqual(address, lowerHex(asset)));
}

/** The conclusion from a receipt, once enough blocks confirm it. */
function onceDeep(shown: Evidence, { blockNumber }: TransactionReceipt, head: Head, above: bigint): Evidence {
  const stand = head.number - blockNumber;
  return stand >= above ? shown : { kind: 'unknown', cause: `shown by a block with ${stand} of ${above} above it` };
}

/** Concludes that the authorization expired, once a confirmed block is past its end too. */
async function expired(client: Client, query: EvidenceQuery, head: Head, above: bigint): Promise<Evidence> {
  const stays = above === 0n ? head : await readHead(client, head.number > above ? head.number - above : 0n);
  if (stays.timestamp >= query.validBefore) return { kind: 'worthless', reason: EXPIRED };
  return { kind: 'unknown', cause: 'unspent at its end, in too few blocks' };
}

/**
 * Finds the log that spent the authorization: use and cancellation are both logged with payer and
 * nonce, so there is one at most. Undefined proves no cancellation: the index of logs may lag
 * behind the state, or the search may be too short.
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

/** The block at about `since` by the pace of the last blocks, at most `MAX_BLOCKS_BACK` back. */
async function firstBlock(head: Head, since: number, blockAt: (number: bigint) => Promise<Head>): Promise<bigint> {
  const sample = await blockAt(head.number - PACE_SAMPLE);
  const elapsed = Math.max(1, head.timestamp - sample.timestamp);
  const blocks = BigInt(Math.ceil((Math.max(0, head.timestamp - since) / elapsed) * Number(PACE_SAMPLE) * PACE_MARGIN));
  const back = blocks > MAX_BLOCKS_BACK ? MAX_BLOCKS_BACK : blocks;
  return back >= head.number ? 0n : head.number - back;
}

/** The payment to look for. Hex in any case, `value` in base units as a decimal string. */
interface ExpectedPayment {
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
  readonly payTo: string;
  readonly value: string;
}

/**
 * `elsewhere`: the authorization was spent here, but not on us. `unclear`: it was spent here, and
 * this payer paid us this sum here, but the order of the logs does not tie the two together.
 */
type ReceiptFinding = 'paid' | 'elsewhere' | 'unclear' | 'absent';

/**
 * The log pair rule (x402 5.1): the asset logged that the authorization was used, and its next log
 * is the transfer of exactly this value to the payee. A batch holds several pairs, so the transfer
 * of one authorization must not count for another; and a used nonce without its transfer proves
 * nothing.
 */
export function findPayment(receipt: TransactionReceipt, payment: ExpectedPayment): ReceiptFinding {
  return paymentFinder(receipt, payment.asset)(payment);
}

/** Finds many payments in one receipt, whose logs it decodes once. */
export function paymentFinder(
  receipt: TransactionReceipt,
  asset: string,
): (payment: ExpectedPayment) => ReceiptFinding {
  const logs = assetLogs(receipt, asset);
  const uses = new Map<string, number>();
  for (const [at, log] of logs.entries()) {
    const name = isUse(log) ? nameOf(log.args.authorizer, log.args.nonce) : undefined;
    if (name !== undefined && !uses.has(name)) uses.set(name, at);
  }
  return function find(payment) {
    const at = uses.get(nameOf(payment.from, payment.nonce));
    if (at === undefined) return 'absent';
    if (isTransfer(logs[at + 1], payment)) return 'paid';
    // A transfer right behind another authorization belongs to that one; a lone one may be ours.
    const alone = logs.some((log, i) => isTransfer(log, payment) && !isUse(logs[i - 1]));
    return alone ? 'unclear' : 'elsewhere';
  };
}

function nameOf(from: string, nonce: string): string {
  return `${from} ${nonce}`.toLowerCase();
}

/** A payment that a receipt shows. Hex in lower case, `units` in base units. */
export interface ShownPayment {
  readonly from: string;
  readonly nonce: string;
  readonly units: bigint;
}

/** Every payment to the payee by the log pair rule, in the order of the logs. */
export function paymentsIn(
  receipt: TransactionReceipt,
  { asset, payTo }: Pick<ExpectedPayment, 'asset' | 'payTo'>,
): readonly ShownPayment[] {
  const logs = assetLogs(receipt, asset);
  return logs.flatMap((log, i) => {
    const next = logs[i + 1];
    if (!isUse(log) || next?.eventName !== 'Transfer') return [];
    const [from, nonce, units] = [lowerHex(log.args.authorizer), log.args.nonce, next.args.value];
    return units > 0n && isTransfer(next, { from, payTo, value: String(units) }) ? [{ from, nonce, units }] : [];
  });
}

/**
 * Transfers of exactly this value from others to the payee, each by its place among the logs of the
 * asset in this transaction. Those that an authorization made are left out: its nonce tells their
 * purpose.
 */
export function plainTransfersTo(
  receipt: TransactionReceipt,
  { asset, payTo, value }: Pick<ExpectedPayment, 'asset' | 'payTo' | 'value'>,
): readonly number[] {
  return assetLogs(receipt, asset).flatMap((log, i, logs) => {
    if (log?.eventName !== 'Transfer' || isUse(logs[i - 1])) return [];
    const { from } = log.args;
    return !isAddressEqual(from, lowerHex(payTo)) && isTransfer(log, { from, payTo, value }) ? [i] : [];
  });
}

/** One log of the asset. Undefined is one of another event, which has its place in the order. */
type AssetLog = ReturnType<typeof parseEventLogs<typeof ASSET_ABI>>[number] | undefined;

/** The logs of the asset itself, in order; none when the transaction failed. */
function assetLogs({ status, logs }: TransactionReceipt, asset: string): readonly AssetLog[] {
  if (status !== 'success') return [];
  const own = logs.filter((log) => isAddressEqual(log.address, lowerHex(asset)));
  const known = new Map(parseEventLogs({ abi: ASSET_ABI, logs: own }).map((log) => [log.logIndex, log]));
  return own.toSorted((a, b) => a.logIndex - b.logIndex).map(({ logIndex }) => known.get(logIndex));
}

function isUse(log: AssetLog): log is AssetLog & { readonly eventName: 'AuthorizationUsed' } {
  return log?.eventName === 'AuthorizationUsed';
}

function isTransfer(log: AssetLog, { from, payTo, value }: Pick<ExpectedPayment, 'from' | 'payTo' | 'value'>): boolean {
  return (
    log?.eventName === 'Transfer' &&
    isAddressEqual(log.args.from, lowerHex(from)) &&
    isAddressEqual(log.args.to, lowerHex(payTo)) &&
    log.args.value === BigInt(value)
  );
}

/** The search for a log begins this much earlier, because clocks of chains and gateways differ. */
export const CLOCK_MARGIN_SECONDS = 600;
/** Pauses between readings, milliseconds: short at first, then at the pace of blocks. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** The query for the authorization of this proof. */
export function evidenceQuery(
  { payload }: Proof,
  offer: PaymentRequirements,
  knownTransaction?: string,
): EvidenceQuery {
  const { from, nonce, validBefore } = payload.payload.authorization;
  const ends = Number(validBefore);
  const since = notUsedBefore(ends, offer.maxTimeoutSeconds);
  const { asset, payTo, amount } = offer;
  return { asset, from, nonce, payTo, value: amount, validBefore: ends, since, knownTransaction };
}

/**
 * The earliest use of an authorization, Unix seconds: the window check refuses a proof that comes
 * before.
 */
export function notUsedBefore(validBefore: number, maxTimeoutSeconds: number): number {
  return validBefore - maxTimeoutSeconds - VALID_BEFORE_EXCESS_SECONDS - CLOCK_MARGIN_SECONDS;
}

/**
 * Whether the authorization pays exactly what the offer asks. An authorization with a record
 * reaches the rail without the local checks, and must never be sent for another offer.
 */
export function paysOffer({ payload }: Proof, offer: PaymentRequirements): boolean {
  const { to, value } = payload.payload.authorization;
  return to.toLowerCase() === offer.payTo.toLowerCase() && BigInt(value) === BigInt(offer.amount);
}

/** The chain's evidence in the words of the rail; only the known transaction is not by others. */
export async function readingOf(chain: Chain, query: EvidenceQuery): Promise<Reading> {
  const evidence = await chain.readEvidence(query);
  return decided(evidence, query) ?? (evidence.kind === 'unknown' ? evidence : { kind: 'open' });
}

/** The conclusion of definite evidence; undefined while the evidence can still change. */
export function decided(
  evidence: Evidence,
  { knownTransaction }: Pick<EvidenceQuery, 'knownTransaction'>,
): Settled | Worthless | undefined {
  switch (evidence.kind) {
    case 'paid': {
      const { transaction } = evidence;
      const by = transaction === knownTransaction ? {} : { by: 'others' as const };
      return { kind: 'settled', evidence: 'logs', transaction, ...by };
    }
    case 'worthless': {
      const { reason, transaction } = evidence;
      const how = reason === EXPIRED ? 'expired' : 'elsewhere';
      return { kind: 'refused', reason, evidence: how, ...(transaction === undefined ? {} : { transaction }) };
    }
    default:
      return undefined;
  }
}

/**
 * Reads the chain until it decides, the known transaction has failed in a block, or the wait is
 * over. `settled` and `refused` come from the chain; any other end is `uncertain` with the known
 * hash, and with `cause` unless the transaction failed. A failed transaction leaves the
 * authorization valid: anyone may still send it.
 */
export async function confirmPayment(
  chain: Chain,
  query: EvidenceQuery,
  waitMs: number,
  cause: string,
): Promise<Settlement> {
  const ends = performance.now() + waitMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const evidence = await chain.readEvidence(query);
    const shown = decided(evidence, query);
    if (shown !== undefined) return shown;
    const { knownTransaction } = query;
    const known = knownTransaction === undefined ? {} : { transaction: knownTransaction };
    if (evidence.kind === 'open' && evidence.failed === true)
      return { kind: 'uncertain', cause: 'the transaction failed in its block', failed: true, ...known };
    const left = ends - performance.now();
    if (left <= 0) return { kind: 'uncertain', cause, ...known };
    await delay(Math.min(pause, left));
  }
}
