/** `acg reconcile --from-chain`: rebuilds the receipts that a lost store had, from the chain. */

import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { Client } from 'viem';
import type { GatewayConfig } from '../config/document/config.ts';
import { loadConfig } from '../config/load.ts';
import { type EventDraft, protocolOf } from '../events/event.ts';
import type { PaymentLedger, PaymentRecord } from '../payments/ledger/ledger.ts';
import { receiptOf } from '../payments/ledger/payment-receipt.ts';
import { RECORD_RETENTION_MS } from '../payments/ledger/table.ts';
import { parseAmount, pricesOf } from '../payments/pricing/amount.ts';
import { highestOf } from '../payments/pricing/by-input.ts';
import { fencingToken } from '../payments/settlement/attempt.ts';
import { type Chain, createChain } from '../payments/x402/chain/chain.ts';
import { clientOver, type Head, type Rpc, readHead } from '../payments/x402/chain/node.ts';
import {
  type ChainPayment,
  firstBlockSince,
  type Price,
  paymentsTo,
  receiptFromChain,
} from '../payments/x402/chain/payment-logs.ts';
import { readRefund } from '../payments/x402/refund/transfer.ts';
import { NONCE_ALREADY_USED } from '../payments/x402/wire/reasons.ts';
import { entriesIn, type X402Config } from '../payments/x402/wire/settings.ts';
import { ConfigError } from '../problems/problem.ts';
import type { Receipt } from '../receipts/receipt.ts';
import type { Store } from '../store/documents/store.ts';
import { CONFIG_OPTION, defineCommand, isoMilliseconds, UnavailableError, UsageError } from './program.ts';
import { requireStoreFile, withNode, withStore } from './with-store.ts';

/** Reach of a search without `--since`, seconds: as long as receipts are found by their request. */
const DEFAULT_REACH_SECONDS = 30 * 24 * 60 * 60;
/** Receipts written at once; what was written before a failure stays. */
const BATCH = 100;
/** Between two lines of progress, milliseconds. */
const PROGRESS_EVERY_MS = 2_000;

export function reconcileCommand(): Command {
  const about = `Writes a receipt for every payment that the chain shows and a lost store forgot, one JSON line each on stdout. May run
beside the gateways. With --decide it ends one payment of which nothing could tell whether it was made, as
GET /api/receipts?uncertain=payment lists them.`;
  return defineCommand('reconcile', about, 'acg reconcile --from-chain --since 2026-01-31 --dry-run')
    .option(...CONFIG_OPTION)
    .option('--from-chain', 'search the chain')
    .option('--since <block|date>', 'from this block, or this time in ISO 8601; else the last 30 days')
    .option('--dry-run', 'print what is missing and write nothing')
    .option('--decide <payId>', 'decide this payment, the payment.replayKey of its receipt')
    .option('--transaction <hash>', 'the transaction that paid, where it was found')
    .argument(
      '[decision]',
      'of --decide: paid, unpaid, or unclaimed where another store with the same payee has sold it',
    )
    .action(async (decision: string | undefined, { decide: payId, transaction, ...args }) => {
      if (payId === undefined) {
        if (decision !== undefined) throw new UsageError(`unexpected argument ${decision}: it belongs to --decide`);
        await reconcile({ fromChain: false, dryRun: false, ...args });
        return;
      }
      await decide({ ...args, decision: readDecision(payId, decision, transaction) });
    });
}

interface ReconcileArgs {
  readonly config?: string;
  readonly fromChain: boolean;
  /** A block number, or ISO 8601; without a time of day midnight UTC. */
  readonly since?: string;
  readonly dryRun: boolean;
}

/**
 * Writes a receipt for every payment that a chain shows and the receipt book lacks, one JSON line
 * each on stdout; a second run finds nothing left to do. It may run while the gateways do: a
 * payment has one receipt; a gateway's replaces a rebuilt one, never the reverse. Networks are
 * searched one after another, and one that fails leaves the others.
 * @throws UsageError, ConfigError; Error when node or store do not answer
 */
async function reconcile(args: ReconcileArgs): Promise<void> {
  if (!args.fromChain) throw new UsageError('say from where: reconcile --from-chain');
  const since = args.since === undefined ? undefined : readSince(args.since);
  const config = loadConfig({ path: args.config, env: process.env });
  const entries = searchable(config);
  const several = entries.length > 1;
  if (several && since !== undefined && 'block' in since)
    throw new UsageError(
      '--since must be a time where payments.x402 has several entries: each network has its own blocks',
    );
  const failures: string[] = [];
  for (const [entry, x402] of entries.entries()) {
    const where = several ? `${x402.network}: ` : '';
    const search = { config, x402, entry, where, since, write: !args.dryRun };
    try {
      await withNode(x402, (rpc) => withStore(config, (store) => rebuild({ ...search, rpc, store })));
    } catch (error) {
      if (!several) throw error;
      failures.push(`${where}${error instanceof Error ? error.message : error}`);
    }
  }
  if (failures.length > 0) throw new UnavailableError(failures.join('; '));
}

interface Rebuilding {
  readonly config: GatewayConfig;
  readonly x402: X402Config;
  /** Its index in `payments.x402`. */
  readonly entry: number;
  /** The network in front of each line, where there are several; else empty. */
  readonly where: string;
  readonly rpc: Rpc;
  readonly store: Store;
  readonly since: Since | undefined;
  readonly write: boolean;
}

async function rebuild({ config, x402, entry, where, rpc, store, since, write }: Rebuilding): Promise<void> {
  const client = clientOver(rpc.call);
  const chain = createChain(rpc, x402.confirmations);
  const head = await readHead(client);
  const first = await firstBlock(client, head, since);
  // `--since` declares that everything after it was lost.
  const trimmed = since === undefined ? await store.receipts.trimmedRange() : undefined;
  const prices = pricesIn(config, entry, x402.assetDecimals);
  const counts = { foreign: 0, found: 0, known: 0, trimmed: 0, missing: 0 };
  let batch: Receipt[] = [];
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    const lost: Receipt[] = [];
    for (const receipt of await unknown(store, batch)) lost.push(await withRefund(chain, receipt, x402.assetDecimals));
    const missing = write ? await added(store, lost) : lost;
    for (const receipt of missing) process.stdout.write(`${JSON.stringify(receipt)}\n`);
    counts.missing += missing.length;
    counts.known += batch.length - missing.length;
    batch = [];
  };
  const isOurs = await ownership(x402);
  const { asset, payTo } = x402;
  const search = { asset, payTo, first, last: head.number };
  for await (const payment of paymentsTo(rpc, search, progress(where, head.number))) {
    if (!isOurs(payment)) {
      counts.foreign += 1;
      continue;
    }
    counts.found += 1;
    const receipt = receiptFromChain(payment, x402, prices, new Date());
    if (wasLost(receipt.id, payment.time * 1_000, trimmed, Date.now())) batch.push(receipt);
    else counts.trimmed += 1;
    if (batch.length === BATCH) await flush();
  }
  await flush();
  const did = write ? 'written' : 'missing (dry run, nothing was written)';
  const old =
    counts.trimmed === 0
      ? ''
      : `, ${counts.trimmed} that the book may have dropped once delivered (--since writes them)`;
  if (counts.foreign > 0)
    process.stderr.write(
      `${where}${counts.foreign} payments are not known to be this store's and were left out; with one store set payments.x402.payToExclusive: true\n`,
    );
  process.stderr.write(
    `${where}blocks ${first} to ${head.number}: ${counts.found} payments, ${counts.known} known already${old}, ${counts.missing} receipts ${did}\n`,
  );
}

/** The receipt with its refund, where the chain shows that it was sent back (contract 4.3). */
async function withRefund(chain: Chain, receipt: Receipt, decimals: number): Promise<Receipt> {
  const { payment } = receipt;
  if (payment === undefined) return receipt;
  const { replayKey: payId, asset, payer, payee, amount, settledAt } = payment;
  const units = String(parseAmount(amount, decimals));
  const terms = { payId, asset, payer, payee, units, settledAt: Date.parse(settledAt) };
  const shown = await readRefund(chain, terms);
  if (shown.kind === 'paid')
    return { ...receipt, refund: { status: 'refunded', transaction: shown.transaction, at: receipt.at } };
  if (shown.kind === 'unknown') process.stderr.write(`warning: whether ${payId} was sent back: ${shown.cause}\n`);
  return receipt;
}

/**
 * Whether a payment to the payee was made for this store (contract 4.3): every one with
 * `payToExclusive`, else those that our own relayer sent and marked.
 */
async function ownership({
  payToExclusive,
  facilitator,
}: X402Config): Promise<(payment: Pick<ChainPayment, 'sender' | 'marked'>) => boolean> {
  if (payToExclusive) return () => true;
  // Nothing tells; `searchable` has refused it.
  if (facilitator.mode !== 'local') return () => false;
  const { prepareKey } = await import('../payments/x402/evm/account.ts');
  const relayer = await prepareKey(facilitator.privateKey);
  return ({ sender, marked }) => marked && sender === relayer.address;
}

/**
 * Whether the receipt of a payment may have been lost: its id is outside `trimmed`, or the payment
 * is so young that the ledger still tells whether it was delivered. Otherwise the full book may
 * have dropped it as delivered, and it must not come back as owed. `paidMs`: time of its block,
 * milliseconds. `trimmed`: the oldest and newest ids that the book dropped.
 */
export function wasLost(
  id: string,
  paidMs: number,
  trimmed: { readonly from: string; readonly to: string } | undefined,
  nowMs: number,
): boolean {
  return trimmed === undefined || id < trimmed.from || id > trimmed.to || paidMs > nowMs - RECORD_RETENTION_MS;
}

/** Writes the receipts that the store does not have, and resolves with them. */
async function added(store: Store, missing: readonly Receipt[]): Promise<readonly Receipt[]> {
  // A gateway may have written some meanwhile.
  const ids = new Set(await store.receipts.add(missing));
  return missing.filter(({ id }) => ids.has(id));
}

async function unknown({ receipts, ledger }: Store, batch: readonly Receipt[]): Promise<readonly Receipt[]> {
  const missing: Receipt[] = [];
  for (const receipt of batch) {
    const replayKey = receipt.payment?.replayKey ?? '';
    const found = await receipts.page({ limit: 1, payment: replayKey });
    if (found.receipts.length > 0) continue;
    const state = (await ledger.read(replayKey))?.state;
    // The receipt was dropped for the bounds of the book.
    if (state === 'delivered') continue;
    if (state === 'refused') process.stderr.write(`warning: ${replayKey} was refused, and the chain shows it paid\n`);
    missing.push(receipt);
  }
  return missing;
}

/** The prices in the asset of one entry, which need not be offered. */
function pricesIn({ resources }: GatewayConfig, at: number, decimals: number): readonly Price[] {
  return resources.flatMap(({ id, pricing }) => {
    const { by, ended = [] } = pricing.type === 'free' ? {} : pricing;
    const prices = [...pricesOf(pricing), ...ended].filter(({ entry = 0 }) => entry === at);
    return prices.map(({ units, currency }) => {
      const highest = by === undefined ? units : parseAmount(highestOf(by), decimals);
      return { resourceId: id, units, highest, currency };
    });
  });
}

const NO_NODE = 'is missing: receipts are rebuilt from the logs of the chain, through a node of the network';
const NOT_EXCLUSIVE =
  'must be true for this: without it nothing shows which payments to payTo were made for this store, and another store or seller may use it';

/**
 * All entries of `payments.x402`.
 * @throws ConfigError when one has no chain to ask, or nothing shows which payments are ours
 */
function searchable(config: GatewayConfig): readonly X402Config[] {
  const entries = entriesIn(config);
  if (entries.length === 0)
    throw new ConfigError([{ path: 'payments.x402', message: 'is missing: without it nothing was ever paid' }]);
  const problems = entries.flatMap(({ rpcUrls, payToExclusive, facilitator }, index) => {
    const at = entries.length === 1 ? 'payments.x402' : `payments.x402[${index}]`;
    if (rpcUrls.length === 0) return [{ path: `${at}.rpcUrl`, message: NO_NODE }];
    const isShared = !payToExclusive && facilitator.mode !== 'local';
    return isShared ? [{ path: `${at}.payToExclusive`, message: NOT_EXCLUSIVE }] : [];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return entries;
}

type Since = { readonly block: bigint } | { readonly seconds: number };

/** @throws UsageError */
function readSince(text: string): Since {
  if (/^\d{1,18}$/.test(text)) return { block: BigInt(text) };
  const milliseconds = isoMilliseconds(text);
  if (milliseconds !== undefined) return { seconds: Math.floor(milliseconds / 1_000) };
  throw new UsageError('--since must be a block number, or ISO 8601 such as 2026-01-31 or 2026-01-31T12:00:00Z');
}

/** @throws UsageError when that block is not there yet */
async function firstBlock(client: Client, head: Head, since: Since | undefined): Promise<bigint> {
  const from = since ?? { seconds: head.timestamp - DEFAULT_REACH_SECONDS };
  const first =
    'block' in from ? from.block : await firstBlockSince(from.seconds, head, (number) => readHead(client, number));
  if (first > head.number) throw new UsageError(`--since lies after the newest block, ${head.number}`);
  return first;
}

/** Prints a line every few seconds: a long search must not look dead. */
function progress(where: string, last: bigint): (searched: bigint) => void {
  let printed = performance.now();
  return function print(searched) {
    if (performance.now() - printed < PROGRESS_EVERY_MS) return;
    printed = performance.now();
    process.stderr.write(`${where}block ${searched} of ${last}\n`);
  };
}

const DECISIONS = ['paid', 'unpaid', 'unclaimed'] as const;

/** The operator's decision about one payment. */
interface Decision {
  readonly payId: string;
  /** `unclaimed`: paid, for another store or seller of the same payee. */
  readonly was: (typeof DECISIONS)[number];
  /** The transaction that paid, where it was found: 0x and 64 hex digits. */
  readonly transaction?: string;
}

const PAY_ID = /^[0-9a-f]{64}$/;
const TRANSACTION = /^0x[0-9a-f]{64}$/;

/** Reads `--decide` and its word. @throws UsageError */
export function readDecision(payId: string, was: string | undefined, transaction: string | undefined): Decision {
  if (!PAY_ID.test(payId)) throw new UsageError('--decide wants the payment.replayKey of the receipt: 64 hex digits');
  const decision = DECISIONS.find((one) => one === was);
  if (decision === undefined)
    throw new UsageError('give the decision: reconcile --decide PAYID paid, or unpaid, or unclaimed');
  if (transaction === undefined) return { payId, was: decision };
  if (decision !== 'paid') throw new UsageError('--transaction belongs to paid');
  const hash = transaction.toLowerCase();
  if (!TRANSACTION.test(hash)) throw new UsageError('--transaction wants a hash: 0x and 64 hex digits');
  return { payId, was: decision, transaction: hash };
}

/**
 * Ends a payment that is `unresolved`. Paid: it is owed from now on, so a gateway delivers it, or
 * its buyer collects it, for 24 hours, and then a refund is due. Unpaid: its buyer is asked to pay
 * anew. Unclaimed: its buyer is told that the authorization is used. May run while the gateways do.
 * @throws UsageError, ConfigError; Error when the store does not answer, or the payment is not
 * unresolved
 */
export async function decide({ config, decision }: { readonly config?: string; readonly decision: Decision }) {
  const settings = loadConfig({ path: config, env: process.env });
  requireStoreFile(settings);
  await withStore(settings, async (store) => {
    await decided(store.ledger, decision);
    process.stdout.write(`${decision.payId} ${decision.was}\n`);
  });
}

/** @throws Error when the payment is not unresolved */
export async function decided(ledger: PaymentLedger, { payId, was, transaction }: Decision): Promise<void> {
  const record = await ledger.read(payId);
  if (record === undefined) throw new Error(`${payId} is not known to this store`);
  if (record.state !== 'unresolved') throw new Error(`${payId} is ${record.state}: it waits for no decision`);
  const change = was === 'paid' ? asPaid(record, transaction) : asRefused(record, was);
  // One step token, so that a repetition of this command changes nothing.
  const command = { ...fencingToken(record), step: randomUUID(), leaseMs: 0, ...change };
  const written = await ledger.advance(command);
  if (written.kind !== 'done') throw new Error(`${payId} was decided meanwhile`);
}

function asPaid(record: PaymentRecord, transaction: string | undefined) {
  const at = new Date();
  const hash = transaction ?? record.transaction;
  const known = hash === undefined ? {} : { transaction: hash };
  const { network, amount, currency, payer } = record;
  const paid = { ...record, ...known, evidence: 'operator' } as const;
  return {
    to: 'settled',
    facts: { ...known, evidence: 'operator' },
    receipt: receiptOf(paid, { settledAt: at, at, durationMs: 0, delivery: undefined }),
    events: [
      event(record, at, 'payment.settled', 'ok', {
        transaction: hash ?? '',
        network,
        amount,
        currency,
        payer,
        decided: 'operator',
      }),
    ],
  } as const;
}

function asRefused(record: PaymentRecord, was: 'unpaid' | 'unclaimed') {
  const unclaimed = was === 'unclaimed';
  const reason = unclaimed ? NONCE_ALREADY_USED : 'settlement_undecided';
  return {
    to: 'refused',
    facts: { reason, evidence: unclaimed ? 'unclaimed' : 'operator' },
    // Nothing was paid here, so no receipt remains.
    dropReceipt: record.receiptId,
    events: [event(record, new Date(), 'payment.rejected', 'error', { reason, decided: 'operator' })],
  } as const;
}

function event(
  { requestId, callId, resourceId, channel }: PaymentRecord,
  at: Date,
  type: EventDraft['type'],
  status: 'ok' | 'error',
  data: NonNullable<EventDraft['data']>,
): EventDraft {
  return {
    type,
    requestId,
    callId,
    resourceId,
    at: at.toISOString(),
    adapter: protocolOf(channel),
    status,
    paymentProvider: 'x402',
    data,
  };
}
