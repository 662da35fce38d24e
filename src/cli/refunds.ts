/** `acg refunds`: the payments that the merchant owes back. */

import type { Command } from 'commander';
import { formatAmount, parseAmount } from '../payments/pricing/amount.ts';
import type { Receipt, ReceiptPayment } from '../receipts/receipt.ts';
import { type AccessArgs, addAccessOptions, openGatewayClient, readList } from './gateway-client.ts';
import { addFormatOptions, type FormatArgs, members, printList, type Shape } from './output.ts';
import { addSubcommand, defineCommandGroup } from './program.ts';

/** Most decimals of an asset that can be configured, so that sums are exact. */
export const MOST_DECIMALS = 36;

/** A payment to send back. */
interface Refund {
  readonly receiptId: string;
  readonly resourceId: string;
  readonly requestId: string;
  /** The receiver of the refund. */
  readonly payer: string;
  /** Display units. */
  readonly amount: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  /** The transaction that paid; empty where only the facilitator said so. */
  readonly transaction: string;
  /** Why nothing was delivered, an error code of the gateway. */
  readonly reason?: string;
  /** The time since which the refund is due, ISO 8601. */
  readonly dueSince: string;
  readonly settledAt: string;
  /** Present while the refund is being sent. */
  readonly status?: NonNullable<Receipt['refund']>['status'];
  /** The question to answer before the refund is sent. */
  readonly first?: string;
}

/** The sum of the refunds in one asset. */
interface Sum extends Pick<Refund, 'amount' | 'currency' | 'network' | 'asset'> {
  readonly refunds: number;
}

export function refundsCommand(): Command {
  const about = 'What buyers have paid for, did not get in time, and are owed back.';
  const command = defineCommandGroup('refunds', about, 'acg refunds list --csv > refunds.csv');
  const list = addSubcommand(
    command,
    'list',
    `Lists the refunds that are due. A running gateway is asked; the oldest come first, sums go to stderr. An entry stays until the chain
shows that it was sent (acg refunds pay, acg refunds record).`,
    'acg refunds list --csv > refunds.csv',
  );
  addFormatOptions(addAccessOptions(list)).action((args) => listRefunds(args));
  return command;
}

async function listRefunds(args: AccessArgs & FormatArgs): Promise<void> {
  const { entries } = await readList<Receipt>(openGatewayClient(args), {
    path: '/api/receipts',
    query: { delivered: 'false' },
    limit: Number.POSITIVE_INFINITY,
  });
  const refunds = entries.flatMap(refundOf).sort((one, other) => (one.dueSince < other.dueSince ? -1 : 1));
  const sums = sumsOf(refunds);
  printList({ rows: refunds, document: { refunds, sums }, none: 'no refund is due' }, SHAPE, args);
  for (const { refunds: count, amount, currency, network } of sums)
    process.stderr.write(`${amount} ${currency} on ${network} in ${count === 1 ? '1 refund' : `${count} refunds`}\n`);
  const others = entries.length - refunds.length;
  if (others > 0)
    process.stderr.write(`undelivered without a refund due: ${others}, which acg receipts --undelivered lists\n`);
}

/** The refund of a receipt; none where the buyer may still collect, or nothing shows a payment. */
function refundOf({ id, resourceId, requestId, at, payment, refund, metadata = {} }: Receipt): readonly Refund[] {
  if (payment === undefined || metadata.refundDue !== true) return [];
  const { payer, amount, currency, network, asset, externalReference, settledAt } = payment;
  const { backendErrorCode } = metadata;
  const first = firstOf(metadata);
  return [
    {
      ...{ receiptId: id, resourceId, requestId, payer, amount, currency, network, asset, settledAt },
      transaction: externalReference,
      ...(backendErrorCode === undefined ? {} : { reason: backendErrorCode }),
      dueSince: at,
      ...(refund === undefined ? {} : { status: refund.status }),
      ...(first === undefined ? {} : { first }),
    },
  ];
}

function firstOf(metadata: NonNullable<Receipt['metadata']>): string | undefined {
  const { deliveryUncertain, sentBytes, ofBytes, recovered } = metadata;
  const sent =
    sentBytes === undefined ? '' : `, ${sentBytes}${ofBytes === undefined ? '' : ` of ${ofBytes}`} bytes were sent`;
  if (deliveryUncertain === true) return `ask the payer: it may have arrived${sent}`;
  return recovered === undefined ? undefined : 'look whether you have paid it before the store was lost';
}

/** By asset, since one currency may be several assets. */
function sumsOf(refunds: readonly Refund[]): readonly Sum[] {
  const byAsset = Map.groupBy(refunds, ({ network, asset, currency }) => `${network} ${asset} ${currency}`);
  return [...byAsset.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { currency, network, asset } = first;
    const units = group.reduce((sum, refund) => sum + unitsOf(refund, MOST_DECIMALS), 0n);
    return [{ amount: formatAmount(units, MOST_DECIMALS), currency, network, asset, refunds: group.length }];
  });
}

/** Base units of an asset with these decimals. @throws Error that names the receipt */
export function unitsOf(
  { receiptId, amount }: Pick<Refund, 'receiptId'> & Pick<ReceiptPayment, 'amount'>,
  decimals: number,
): bigint {
  try {
    return parseAmount(amount, decimals);
  } catch (cause) {
    throw new Error(`${receiptId} has no amount that can be added`, { cause });
  }
}

const SHAPE: Shape<Refund> = {
  table: [
    { title: 'DUE SINCE', value: ({ dueSince }) => dueSince },
    { title: 'AMOUNT', value: ({ amount, currency }) => `${amount} ${currency}`, right: true },
    { title: 'TO', value: ({ payer }) => payer },
    { title: 'NETWORK', value: ({ network }) => network },
    { title: 'WHY', value: ({ status, reason }) => status ?? reason },
    { title: 'FIRST', value: ({ first }) => first, style: () => 'yellow' },
    { title: 'RECEIPT', value: ({ receiptId }) => receiptId },
  ],
  csv: {
    ...members('receiptId', 'dueSince', 'payer', 'amount', 'currency', 'network', 'asset', 'transaction'),
    ...members('settledAt', 'resourceId', 'requestId', 'reason', 'status', 'first'),
  },
};
