/**
 * `acg refunds`: lists the payments that the merchant owes back, sends them back, and takes down
 * those that were sent back by hand. No image has the key that this reads.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { addSubcommand, CONFIG_OPTION, repeated, UsageError } from '../../src/cli/program.ts';
import { refundsCommand as listCommand, MOST_DECIMALS, unitsOf } from '../../src/cli/refunds.ts';
import { requireStoreFile, withNode, withStore } from '../../src/cli/with-store.ts';
import { loadConfig } from '../../src/config/load.ts';
import { AmountError, formatAmount, parseAmount } from '../../src/payments/pricing/amount.ts';
import { createChain } from '../../src/payments/x402/chain/chain.ts';
import { isTransactionHash, nodeFailure, type Rpc } from '../../src/payments/x402/chain/node.ts';
import { dueRecord, payRefund, type RefundOutcome } from '../../src/payments/x402/refund/pay.ts';
import { recordRefund } from '../../src/payments/x402/refund/record.ts';
import { createRefundSender } from '../../src/payments/x402/refund/sender.ts';
import { isPaidIn, whyElsewhere } from '../../src/payments/x402/wire/offers.ts';
import { entriesIn, type X402Config } from '../../src/payments/x402/wire/settings.ts';
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
  await open(args, async ({ store, entries }) => {
    const receiptsOwed = await undelivered(store);
    const owed = args.allDue ? dueAmong(receiptsOwed) : named(receiptsOwed, receipts, args.now === true);
    const chosen = owed.filter((refund) => {
      const why = whyElsewhere(refund, entries);
      if (why !== undefined) left(refund.receiptId, why);
      return why === undefined;
    });
    const confirmed = new Set(args.confirmUncertain);
    for (const id of confirmed)
      if (!chosen.some(({ receiptId }) => receiptId === id))
        note(`--confirm-uncertain ${id}: no refund of it is due here`);
    // One that may have arrived is named by itself.
    const sure = chosen.filter(({ receiptId, uncertain }) => !uncertain || confirmed.has(receiptId));
    for (const { receiptId } of chosen.filter((one) => !sure.includes(one)))
      left(receiptId, `its answer may have arrived: ask the payer, then --confirm-uncertain ${receiptId}`);
    // Each is signed for the network where it was paid, and sent there.
    const groups = entries
      .map((terms) => ({ terms, refunds: sure.filter((refund) => isPaidIn(refund, terms)) }))
      .filter(({ refunds }) => refunds.length > 0);
    const sum = checkedSum(
      groups.flatMap(({ refunds }) => refunds),
      args,
    );
    if (groups.length === 0) {
      note('no refund to send');
      return;
    }
    const hasKey = args.keyFile !== undefined || args.signer !== undefined;
    if (args.dryRun || !hasKey) {
      for (const { terms, refunds } of groups)
        await onNetwork(terms, entries, async () => {
          for (const refund of refunds) {
            const isConfirmed = confirmed.has(refund.receiptId);
            if (refund.collectable && !args.dryRun && !(await collectingEnds(store, terms, refund, isConfirmed)))
              continue;
            print({ ...refund, units: String(unitsOf(refund, terms.assetDecimals)) });
            if (refund.signed !== undefined)
              note(
                `${refund.receiptId}: ${refund.signed} was signed for it and may be on its way; make no other transfer`,
              );
          }
        });
      note(hasKey ? `nothing was sent: ${sum}` : `no key, so nothing was sent: ${sum}`);
      return;
    }
    const accounts = await Promise.all(
      groups.map(async (one) => ({ ...one, ...(await accountsFor(one.terms, args)) })),
    );
    const from = [...new Set(accounts.map(({ signer }) => signer.address))].join(', ');
    if (!args.yes) await agreed(`${sum}, from ${from}`, 'Send?', 'nothing was sent');
    for (const { terms, refunds, signer, gasKey } of accounts)
      await onNetwork(terms, entries, async (rpc) => {
        const chain = createChain(rpc, terms.confirmations);
        const sender = createRefundSender(rpc, terms, gasKey);
        const parts = { ledger: store.ledger, chain, terms, signer, sender, time: TIME };
        for (const refund of refunds) {
          const choice = { confirmed: confirmed.has(refund.receiptId), now: args.now === true };
          told(refund, await payRefund(parts, refund.payId, choice));
        }
      });
  });
}

/** The signer of refunds on one network, and the key that pays the gas there. @throws UsageError */
async function accountsFor(terms: X402Config, args: PayArgs) {
  const key = args.keyFile === undefined ? undefined : await readKey(args.keyFile, terms.chainId);
  const gasKey = args.gasKeyFile === undefined ? key : await readKey(args.gasKeyFile, terms.chainId);
  if (gasKey === undefined) throw new UsageError('--gas-key-file is missing');
  const signer = key === undefined ? await programSigner(args.signer ?? '', terms.payTo, terms) : keySigner(key, terms);
  return { signer, gasKey };
}

/**
 * Works with the node of one entry. Where there are several, one that fails leaves the others.
 * @throws AssetMismatch and the error of the node, where there is one entry
 */
async function onNetwork(
  terms: X402Config,
  entries: readonly X402Config[],
  work: (rpc: Rpc) => Promise<void>,
): Promise<void> {
  if (terms.rpcUrls.length === 0) {
    left(terms.network, `rpcUrl ${NO_NODE}`);
    return;
  }
  try {
    await withNode(terms, work);
  } catch (error) {
    if (entries.length === 1) throw error;
    left(terms.network, nodeFailure(error));
  }
}

/**
 * The sum of each network and currency, in words. A limit counts amounts of all currencies alike.
 * @throws UsageError where a limit is passed
 */
function checkedSum(due: readonly DueRefund[], { maxEach, maxTotal }: PayArgs): string {
  const each = limitOf('--max-each', maxEach);
  const total = limitOf('--max-total', maxTotal);
  const sumOf = (refunds: readonly DueRefund[]): bigint =>
    refunds.reduce((sum, refund) => sum + unitsOf(refund, MOST_DECIMALS), 0n);
  const over = due.find((refund) => each !== undefined && sumOf([refund]) > each);
  if (over !== undefined)
    throw new UsageError(`${over.receiptId}: ${over.amount} ${over.currency} is more than --max-each ${maxEach}`);
  const groups = Map.groupBy(due, ({ currency, network }) => `${currency} on ${network}`);
  const words = [...groups]
    .map(([name, refunds]) => {
      const count = refunds.length === 1 ? '1 refund' : `${refunds.length} refunds`;
      return `${formatAmount(sumOf(refunds), MOST_DECIMALS)} ${name} in ${count}`;
    })
    .join(', ');
  if (total !== undefined && sumOf(due) > total) throw new UsageError(`${words} are more than --max-total ${maxTotal}`);
  return words;
}

/** In the unit of `MOST_DECIMALS`. @throws UsageError */
function limitOf(option: string, text: string | undefined): bigint | undefined {
  try {
    return text === undefined ? undefined : parseAmount(text, MOST_DECIMALS);
  } catch (error) {
    if (error instanceof AmountError) throw new UsageError(`${option} must be an amount such as 0.05`);
    throw error;
  }
}

async function takeDown(receipt: string, hash: string, args: RecordArgs): Promise<void> {
  if (!isTransactionHash(hash)) throw new UsageError('the transaction must be a hash: 0x and 64 hex digits');
  await open(args, async ({ store, entries }) => {
    const [refund] = named(await undelivered(store), [receipt], args.now === true);
    if (refund === undefined) return;
    const terms = entries.find((entry) => isPaidIn(refund, entry));
    if (terms === undefined) {
      left(refund.receiptId, `${whyElsewhere(refund, entries)}`);
      return;
    }
    await onNetwork(terms, entries, async (rpc) => {
      const chain = createChain(rpc, terms.confirmations);
      const parts = { ledger: store.ledger, claims: store.secrets, chain, rpc, terms, time: TIME };
      told(refund, await recordRefund(parts, refund.payId, hash.toLowerCase(), args.now));
    });
  });
}

/** Before a transfer is made by hand: its buyer must not collect meanwhile. */
async function collectingEnds(
  { ledger }: Pick<Store, 'ledger'>,
  terms: X402Config,
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

const NO_NODE = 'is missing: refunds are read from the chain';

/** What both commands work with. `entries`: all of `payments.x402`. */
interface Opened {
  readonly store: Store;
  readonly entries: readonly X402Config[];
}

/** @throws ConfigError; what `withStore` throws */
async function open({ config: path }: { readonly config?: string }, work: (opened: Opened) => Promise<void>) {
  const config = loadConfig({ path, env: process.env });
  const entries = entriesIn(config);
  if (entries.every(({ rpcUrls }) => rpcUrls.length === 0))
    throw new ConfigError([{ path: 'payments.x402.rpcUrl', message: NO_NODE }]);
  requireStoreFile(config);
  await withStore(config, (store) => work({ store, entries }));
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
