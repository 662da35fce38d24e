/** `acg receipts`: what a running gateway has delivered and was paid, or one receipt in full. */

import type { Command } from 'commander';
import { RECEIPT_ID, type Receipt, type ReceiptPayment, receiptIdsBefore } from '../receipts/receipt.ts';
import {
  type AccessArgs,
  addAccessOptions,
  type GatewayClient,
  openGatewayClient,
  readList,
} from './gateway-client.ts';
import { addFormatOptions, type FormatArgs, members, printList, printWhole, type Shape } from './output.ts';
import { defineCommand, oneOf, pastMoment, UsageError, wholeNumber } from './program.ts';

/** As many as the API gives without a limit. */
const USUAL_LIMIT = 50;
/** Twice the receipts that a store keeps unless it is told otherwise. */
const MOST_RECEIPTS = 100_000;

interface ReceiptsArgs extends AccessArgs, FormatArgs {
  readonly undelivered?: boolean;
  readonly uncertain?: string;
  readonly resource?: string;
  readonly requestId?: string;
  readonly callId?: string;
  readonly since?: string;
  readonly limit: number;
}

export function receiptsCommand(): Command {
  const about = 'Lists the receipts of a running gateway, newest first; with an id it shows that receipt in full.';
  const command = defineCommand('receipts', about, 'acg receipts --undelivered --since 7d --csv > owed.csv')
    .argument('[id]')
    .option('--undelivered', 'only what was paid and not delivered')
    .option('--uncertain <what>', 'only where payment or delivery is unknown', (what) =>
      oneOf(what, 'uncertain', ['payment', 'delivery']),
    )
    .option('--resource <id>', 'only of this resource')
    .option('--request-id <id>', 'only of this request')
    .option('--call-id <id>', 'only of this call, as log and events name it')
    .option('--since <time>', 'none older than this: 30m, 12h, 7d, or ISO 8601')
    .option('--limit <n>', 'how many at most', (text) => wholeNumber(text, 'limit', 1, MOST_RECEIPTS), USUAL_LIMIT);
  return addFormatOptions(addAccessOptions(command)).action((id: string | undefined, args) =>
    id === undefined ? receipts(args) : oneReceipt(id, args),
  );
}

async function receipts(args: ReceiptsArgs): Promise<void> {
  const { limit } = args;
  const oldest = args.since === undefined ? undefined : receiptIdsBefore(pastMoment(args.since, 'since', Date.now()));
  const { entries, nextCursor } = await readList<Receipt>(openGatewayClient(args), {
    path: '/api/receipts',
    query: queryOf(args),
    limit,
    // Ids sort by time; `at` changes when a receipt is delivered later.
    isWanted: ({ id }) => oldest === undefined || id > oldest,
  });
  const document = { receipts: entries, ...(nextCursor === undefined ? {} : { nextCursor }) };
  printList({ rows: entries, document, none: 'no receipts' }, SHAPE, args);
  if (nextCursor !== undefined)
    process.stderr.write(`${entries.length} receipts, and there are older ones: --limit ${2 * limit} shows more\n`);
}

/** Parameters of the route. */
function queryOf({ undelivered, uncertain, resource, requestId, callId }: ReceiptsArgs) {
  return {
    ...(undelivered === true ? { delivered: 'false' } : {}),
    ...(uncertain === undefined ? {} : { uncertain }),
    ...(resource === undefined ? {} : { resourceId: resource }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(callId === undefined ? {} : { callId }),
  };
}

async function oneReceipt(id: string, args: ReceiptsArgs): Promise<void> {
  if (!RECEIPT_ID.test(id)) throw new UsageError('a receipt id is receipt_ and a UUID, as the list shows it');
  const receipt = await findReceipt(openGatewayClient(args), id);
  if (receipt === undefined) throw new Error(`no receipt ${id}`);
  if (args.csv === true) printList({ rows: [receipt], document: receipt, none: '' }, SHAPE, args);
  else printWhole(receipt, args);
}

/** A page begins behind its cursor, so the receipt is the first one behind the id after its own. */
async function findReceipt(client: GatewayClient, id: string): Promise<Receipt | undefined> {
  const { entries } = await readList<Receipt>(client, {
    path: '/api/receipts',
    query: { cursor: nextId(id) },
    limit: 1,
  });
  return entries.find((receipt) => receipt.id === id);
}

/** Adds 1 to the last digit that is no f. It is one of the last twelve, which are random. */
function nextId(id: string): string {
  return id.replace(/[0-9a-e]f*$/, (digits) => (BigInt(`0x${digits}`) + 1n).toString(16).padStart(digits.length, '0'));
}

/** The state of the purchase of a receipt, in the words of the runbook. */
function stateOf({ delivered, payment, refund, metadata = {} }: Receipt): string {
  if (delivered) return 'delivered';
  if (payment?.status === 'unknown') return 'payment unknown';
  if (refund !== undefined) return refund.status;
  if (metadata.refundDue === true) return 'refund due';
  if (metadata.deliveryUncertain === true) return 'may have arrived';
  return metadata.answerKept === true ? 'answer kept' : 'undelivered';
}

/** Columns of CSV for members of the payment. */
function ofPayment(...names: readonly (keyof ReceiptPayment)[]): Shape<Receipt>['csv'] {
  return Object.fromEntries(names.map((name) => [name, ({ payment }) => payment?.[name]]));
}

const SHAPE: Shape<Receipt> = {
  table: [
    { title: 'AT', value: ({ at }) => at },
    { title: 'RESOURCE', value: ({ resourceId }) => resourceId },
    { title: 'AMOUNT', value: ({ payment }) => payment && `${payment.amount} ${payment.currency}`, right: true },
    { title: 'STATE', value: stateOf, style: ({ delivered }) => (delivered ? undefined : 'yellow') },
    { title: 'RECEIPT', value: ({ id }) => id },
  ],
  csv: {
    ...members('id', 'at', 'resourceId', 'requestId'),
    callId: ({ metadata }) => metadata?.callId,
    protocol: ({ protocol }) => protocol,
    state: stateOf,
    ...members('delivered', 'deliveredAt', 'backendStatus', 'durationMs'),
    ...ofPayment('amount', 'currency', 'network', 'asset', 'payer', 'payee'),
    transaction: ({ payment }) => payment?.externalReference,
    ...ofPayment('settledAt', 'replayKey'),
    backendErrorCode: ({ metadata }) => metadata?.backendErrorCode,
  },
};
