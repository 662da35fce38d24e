/** The refunds that a store has due, as `acg refunds pay` and `record` take them. */

import { UsageError } from '../../src/cli/program.ts';
import { refundNonce } from '../../src/payments/x402/refund/transfer.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';

/** Receipts of one page. */
const PAGE = 500;

/** A payment to send back. */
export interface DueRefund {
  readonly receiptId: string;
  readonly payId: string;
  /** To whom, and from whom. */
  readonly payer: string;
  readonly payee: string;
  /** Display units. */
  readonly amount: string;
  readonly currency: string;
  readonly network: string;
  readonly asset: string;
  /** Of the EIP-3009 authorization that sends it back. */
  readonly nonce: string;
  /** Its buyer can still collect. */
  readonly collectable?: true;
  /** Its answer may have arrived. */
  readonly uncertain: boolean;
  /** The transaction that an earlier run signed for it. */
  readonly signed?: string;
}

/** Every receipt of a paid call that was not delivered, those that were sent back among them. */
export async function undelivered({ receipts }: Pick<Store, 'receipts'>): Promise<readonly Receipt[]> {
  const found: Receipt[] = [];
  let cursor: string | undefined;
  do {
    const at = cursor === undefined ? {} : { cursor };
    const page = await receipts.page({ limit: PAGE, delivered: false, ...at });
    found.push(...page.receipts);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

/** The oldest first. */
export function dueAmong(receipts: readonly Receipt[]): readonly DueRefund[] {
  return receipts.flatMap((receipt) => dueRefund(receipt, false)).reverse();
}

/**
 * @param now also those whose buyers can still collect
 * @throws UsageError for a receipt that is not due, with the reason
 */
export function named(receipts: readonly Receipt[], ids: readonly string[], now: boolean): readonly DueRefund[] {
  return [...new Set(ids)].flatMap((id) => {
    const receipt = receipts.find((one) => one.id === id);
    if (receipt === undefined)
      throw new UsageError(`${id}: no undelivered receipt of this store; acg refunds list has those that are due`);
    const due = dueRefund(receipt, now);
    if (due.length === 0) throw new UsageError(`${id}: ${whyNot(receipt)}`);
    return due;
  });
}

function dueRefund({ id, payment, metadata = {}, refund }: Receipt, now: boolean): readonly DueRefund[] {
  const collectable = payment?.status === 'settled' && metadata.refundDue !== true && refund === undefined;
  if (payment === undefined || !(metadata.refundDue === true || (now && collectable))) return [];
  const { replayKey, payer, payee, amount, currency, network, asset } = payment;
  const terms = { payer, payee, amount, currency, network, asset };
  const open = collectable ? { collectable } : {};
  const uncertain = metadata.deliveryUncertain === true;
  const signed = refund === undefined ? {} : { signed: refund.transaction };
  return [{ receiptId: id, payId: replayKey, ...terms, nonce: refundNonce(replayKey), ...open, uncertain, ...signed }];
}

function whyNot({ payment, refund }: Receipt): string {
  if (payment === undefined) return 'nothing was paid for it';
  if (refund?.status === 'refunded') return `it was sent back by ${refund.transaction}`;
  if (payment.status === 'unknown') return 'nothing shows whether it was paid; acg reconcile --decide';
  return 'it is not due: its buyer can still collect, which --now ends';
}
