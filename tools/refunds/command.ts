/**
 * `acg refunds`: lists the payments that the merchant owes back, sends them back, and takes down
 * those that were sent back by hand. No image has the key that this reads.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { addSubcommand, CONFIG_OPTION, repeated, UsageError } from '../../src/cli/program.ts';
import { refundsCommand as listCommand, unitsOf } from '../../src/cli/refunds.ts';
import { requireStoreFile, withStoreAndNode } from '../../src/cli/with-store.ts';
import { loadConfig } from '../../src/config/load.ts';
import { AmountError, formatAmount, parseAmount } from '../../src/payments/pricing/amount.ts';
import { type Chain, createChain } from '../../src/payments/x402/chain/chain.ts';
import { isTransactionHash, type Rpc } from '../../src/payments/x402/chain/node.ts';
import { dueRecord, payRefund, type RefundOutcome } from '../../src/payments/x402/refund/pay.ts';
import { recordRefund } from '../../src/payments/x402/refund/record.ts';
import { createRefundSender } from '../../src/payments/x402/refund/sender.ts';
import { whyElsewhere } from '../../src/payments/x402/wire/offers.ts';
import type { X402Config } from '../../src/payments/x402/wire/settings.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { agreed } from '../pay/agreed.ts';
import { type DueRefund, dueAmong, named, undelivered } from './due.ts';
import { keySigner, programSigner, readKey } from './signer.ts';

/** Keeps the process alive while it waits. */
const TIME = { now: () => performance.now(), sleep: (ms: number) => delay(ms) };

/** What `--now` does. */
const NOW = 'also within the 24 hours: the buyer can no longer collect';

interface RecordArgs {
  readonly config?: string;
  readonly now?: true;
}

interface PayArgs {
  readonly config?: string;
  readonly allDue?: true;
  readonly now?: true;
  readonly keyFile?: string;
  readonly signer?: string;
  readonly gasKeyFile?: string;
  readonly maxEach?: string;
  readonly maxTotal?: string;
  readonly confirmUncertain?: readonly string[];
  readonly dryRun?: true;
  readonly yes?: true;
}

export function refundsCommand(): Command {
  const command = listCommand();
  const about = `Sends back what is due. It goes from the account that was paid; the chain takes the refund of a payment once, so the command may be
run again, and by several at once. Without a key it prints the transfers to make.`;
  addSubcommand(command, 'pay', about, 'acg refunds pay --all-due --key-file payee.key --max-total 50')
    .argument('[receipts...]')
    .option(...CONFIG_OPTION)
    .option('--all-due', 'every refund that is due')
    .option('--now', NOW)
    .option('--key-file <file>', 'the private key of payTo, which signs')
    .option('--signer <command>', 'a program that signs instead: EIP-712 JSON on stdin, signature on stdout')
    .option('--gas-key-file <file>', 'the key that pays the gas; else that of payTo')
    .option('--max-each <amount>', 'refuse a larger refund')
    .option('--max-total <amount>', 'refuse a larger sum')
    .option('--confirm-uncertain <receipt>', 'its payer has nothing; may be repeated', repeated)
    .option('--dry-run', 'print the transfers and send nothing')
    .option('--yes', 'send without asking')
    .action((receipts: readonly string[], args: PayArgs) => pay(receipts, args));
  const record = `Takes down a refund sent by hand. The transaction must have sent its amount of the asset to its payer, after
the payment, and for no other refund.`;
  addSubcommand(command, 'record', record, `acg refunds record receipt_01… 0x…`)
    .argument('<receipt>')
    .argument('<transaction>')
    .option(...CONFIG_OPTION)
    .option('--now', NOW)
    .action((receipt: string, transaction: string, args: RecordArgs) => takeDown(receipt, transaction, args));
  return command;
}

async function pay(receipts: readonly string[], args: PayArgs): Promise<void> {
  if ((args.allDue === true) === receipts.length > 0)
    throw new UsageError('name receipts, or all of them with --all-due');
  if (args.allDue && args.now) throw new UsageError('--now takes receipts by their names, not --all-due');
  if (args.keyFile !== undefined && args.signer !== undefined)
    throw new UsageError('--key-file and --signer exclude each other');
  if (args.signer !== undefined && args.gasKeyFile === undefined)
    throw new UsageError('--signer signs no transaction: add --gas-key-file');
  await withStore(args, async (opened) => {
    const { store, x402, rpc, chain } = opened;
    const open = await undelivered(store);
    const owed = args.allDue ? dueAmong(open) : named(open, receipts, args.now === true);
    // Decimals and sums are those of the one asset of the configuration.
    const chosen = owed.filter((refund) => {
      const why = whyElsewhere(refund, x402);
      if (why !== undefined) left(refund.receiptId, why);
      return why === undefined;
    });
    const confirmed = new Set(args.confirmUncertain);
    for (const id of confirmed)
      if (!chosen.some(({ receiptId }) => receiptId === id))
        note(`--confirm-uncertain ${id}: no refund of it is due here`);
    // One that may have arrived is named by itself.
    const due = chosen.filter(({ receiptId, uncertain }) => !uncertain || confirmed.has(receiptId));
    for (const { receiptId } of chosen.filter((one) => !due.includes(one)))
      left(receiptId, `its answer may have arrived: ask the payer, then --confirm-uncertain ${receiptId}`);
    const sum = checkedSum(due, x402, args);
    if (due.length === 0) {
      note('no refund to send');
      return;
    }
    const hasKey = args.keyFile !== undefined || args.signer !== undefined;
    if (args.dryRun || !hasKey) {
      for (const refund of due) {
        const isConfirmed = confirmed.has(refund.receiptId);
        if (refund.collectable && !args.dryRun && !(await collectingEnds(opened, refund, isConfirmed))) continue;
        print({ ...refund, units: String(unitsOf(refund, x402.assetDecimals)) });
        if (refund.signed !== undefined)
          note(`${refund.receiptId}: ${refund.signed} was signed for it and may be on its way; make no other transfer`);
      }
      note(hasKey ? `nothing was sent: ${sum}` : `no key, so nothing was sent: ${sum}`);
      return;
    }
    const key = args.keyFile === undefined ? undefined : await readKey(args.keyFile, x402.chainId);
    const gasKey = args.gasKeyFile === undefined ? key : await readKey(args.gasKeyFile, x402.chainId);
    if (gasKey === undefined) throw new UsageError('--gas-key-file is missing');
    const signer = key === undefined ? await programSigner(args.signer ?? '', x402.payTo, x402) : keySigner(key, x402);
    if (!args.yes) await agreed(`${sum}, from ${signer.address}`, 'Send?', 'nothing was sent');
    const sender = createRefundSender(rpc, x402, gasKey);
    const parts = { ledger: store.ledger, chain, terms: x402, signer, sender, time: TIME };
    for (const refund of due) {
      told(
        refund,
        await payRefund(parts, refund.payId, { confirmed: confirmed.has(refund.receiptId), now: args.now === true }),
      );
    }
  });
}

/** @throws UsageError where a limit is passed */
function checkedSum(
  due: readonly DueRefund[],
  { assetDecimals, network }: X402Config,
  { maxEach, maxTotal }: PayArgs,
): string {
  const each = limitOf('--max-each', maxEach, assetDecimals);
  const total = limitOf('--max-total', maxTotal, assetDecimals);
  const units = due.map((refund) => unitsOf(refund, assetDecimals));
  const over = due.find((_, index) => each !== undefined && (units[index] ?? 0n) > each);
  if (over !== undefined)
    throw new UsageError(`${over.receiptId}: ${over.amount} ${over.currency} is more than --max-each ${maxEach}`);
  const sum = units.reduce((one, other) => one + other, 0n);
  const words = `${formatAmount(sum, assetDecimals)} ${due[0]?.currency ?? ''} on ${network} in ${due.length === 1 ? '1 refund' : `${due.length} refunds`}`;
  if (total !== undefined && sum > total) throw new UsageError(`${words} are more than --max-total ${maxTotal}`);
  return words;
}

/** @throws UsageError */
function limitOf(option: string, text: string | undefined, decimals: number): bigint | undefined {
  try {
    return text === undefined ? undefined : parseAmount(text, decimals);
  } catch (error) {
    if (error instanceof AmountError) throw new UsageError(`${option} must be an amount such as 0.05`);
    throw error;
  }
}

async function takeDown(receipt: string, hash: string, args: RecordArgs): Promise<void> {
  if (!isTransactionHash(hash)) throw new UsageError('the transaction must be a hash: 0x and 64 hex digits');
  await withStore(args, async ({ store, x402, rpc, chain }) => {
    const [refund] = named(await undelivered(store), [receipt], args.now === true);
    if (refund === undefined) return;
    const parts = { ledger: store.ledger, claims: store.secrets, chain, rpc, terms: x402, time: TIME };
    told(refund, await recordRefund(parts, refund.payId, hash.toLowerCase(), args.now));
  });
}

/** Before a transfer is made by hand: its buyer must not collect meanwhile. */
async function collectingEnds(
  { store: { ledger }, x402: terms }: Opened,
  { receiptId, payId }: DueRefund,
  confirmed: boolean,
): Promise<boolean> {
  const record = await ledger.read(payId);
  const due = record && (await dueRecord({ ledger, terms }, record, { confirmed, now: true }));
  if (due?.kind === 'due')
    note(`${receiptId}: its buyer can no longer collect; acg refunds record takes the transfer down`);
  else left(receiptId, due?.why ?? 'its record is not in this store');
  return due?.kind === 'due';
}

/** What both commands work with. */
interface Opened {
  readonly store: Store;
  readonly x402: X402Config;
  readonly rpc: Rpc;
  readonly chain: Chain;
}

/** @throws ConfigError; what `withStoreAndNode` throws */
async function withStore({ config: path }: { readonly config?: string }, work: (opened: Opened) => Promise<void>) {
  const config = loadConfig({ path, env: process.env });
  const { x402 } = config;
  if (x402 === undefined || x402.rpcUrls.length === 0)
    throw new ConfigError([{ path: 'payments.x402.rpcUrl', message: 'is missing: refunds are read from the chain' }]);
  requireStoreFile(config);
  await withStoreAndNode(config, x402, ({ store, rpc }) =>
    work({ store, x402, rpc, chain: createChain(rpc, x402.confirmations) }),
  );
}

function told({ receiptId, payer, amount, currency }: DueRefund, outcome: RefundOutcome): void {
  if (outcome.kind === 'refunded') {
    print({ receiptId, payer, amount, currency, transaction: outcome.transaction, before: outcome.before });
    return;
  }
  left(receiptId, outcome.why);
}

function left(receiptId: string, why: string): void {
  process.exitCode = 1;
  note(`${receiptId}: ${why}`);
}

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
