/** Records a refund that an operator sent by hand, once the chain shows it. */

import type { Time } from '../../../time/time.ts';
import type { PaymentRecord } from '../../ledger/ledger.ts';
import { CLOCK_MARGIN_SECONDS, plainTransfersTo } from '../chain/chain.ts';
import { clientOver, type Rpc, readHead, readReceipt } from '../chain/node.ts';
import {
  closeRefund,
  dueRecord,
  REFUND_LIFE_SECONDS,
  type RefundOutcome,
  type RefundParts,
  shownPayment,
  whyNotDue,
} from './pay.ts';
import { readRefund } from './transfer.ts';

interface RecordParts extends Pick<RefundParts, 'chain'> {
  /** `confirmations`: blocks that must hold the transfer, its own included. */
  readonly terms: RefundParts['terms'] & { readonly confirmations: number };
  readonly ledger: RefundParts['ledger'];
  /** Claims a transfer for one payment: the first value under its name stays in the store. */
  readonly claims: { agree(transfer: string, payId: string): Promise<string> };
  readonly rpc: Rpc;
  readonly time?: Time | undefined;
}

/**
 * @param transaction lower case 0x-hex
 * @param now records it also while its buyer can still collect, and ends the collecting
 * @throws when the node or the store does not answer
 */
export async function recordRefund(
  parts: RecordParts,
  payId: string,
  transaction: string,
  now = false,
): Promise<RefundOutcome> {
  const record = await parts.ledger.read(payId);
  if (record === undefined) return { kind: 'left', why: 'its record is not in this store' };
  const why = whyNotDue(record, parts.terms, { ...SENT_BY_HAND, now });
  if (why !== undefined) return { kind: 'left', why };
  const shown = await readRefund(parts.chain, record);
  if (shown.kind === 'paid') return close(parts, record, shown.transaction, { before: true });
  if (shown.kind === 'unknown') return { kind: 'pending', why: shown.cause };
  // The authorization of an earlier run can still be sent: the payee would pay twice.
  const until = record.changedAt + (REFUND_LIFE_SECONDS + CLOCK_MARGIN_SECONDS) * 1_000;
  if (record.state === 'refunding' && shown.kind === 'open' && shown.headTime * 1_000 <= until)
    return {
      kind: 'pending',
      why: `a transfer was signed for it, which can be sent until ${new Date(until).toISOString()}; record it after that`,
    };
  const payment = await shownPayment(parts.chain, record);
  if (payment.kind !== 'paid') return payment;
  const places = await transfersBack(parts, record, { transaction, after: payment.transaction });
  if (places === undefined) return { kind: 'pending', why: `${transaction} has too few blocks above it` };
  for (const place of places)
    if ((await parts.claims.agree(`refund ${transaction} ${place}`, payId)) === payId)
      return close(parts, record, transaction, { before: false, unchanged: true });
  return {
    kind: 'left',
    why: `${transaction} does not send ${record.amount} to ${record.payer} after it was paid, or for another refund`,
  };
}

/** The operator has sent the refund already, whether the answer arrived or not. */
const SENT_BY_HAND = { confirmed: true, now: true } as const;

async function close(
  parts: RecordParts,
  record: PaymentRecord,
  transaction: string,
  how: Parameters<typeof closeRefund>[3],
) {
  const due = await dueRecord(parts, record, SENT_BY_HAND);
  return due.kind === 'due' ? closeRefund(parts, due.record, transaction, how) : due;
}

/**
 * Places in `transaction` of the transfers of the amount to the payer; none unless it is in a block
 * after that of the payment, undefined where too few blocks confirm it.
 */
async function transfersBack(
  { rpc, terms }: Pick<RecordParts, 'rpc' | 'terms'>,
  { asset, payer, units }: PaymentRecord,
  { transaction, after }: { readonly transaction: string; readonly after: string },
): Promise<readonly number[] | undefined> {
  const client = clientOver(rpc.call);
  const [paid, receipt] = await Promise.all([readReceipt(client, after), readReceipt(client, transaction)]);
  if (paid === undefined || receipt === undefined || receipt.blockNumber <= paid.blockNumber) return [];
  const { number } = await readHead(client);
  if (number - receipt.blockNumber < BigInt(terms.confirmations - 1)) return undefined;
  return plainTransfersTo(receipt, { asset, payTo: payer, value: units });
}
