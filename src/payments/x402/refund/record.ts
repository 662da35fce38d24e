/** Takes down a refund that was sent by hand, once the chain shows it. */

import type { Time } from '../../../time/time.ts';
import type { PaymentLedger, PaymentRecord } from '../../ledger/ledger.ts';
import { clientOver, readHead, readReceipt } from '../chain/client.ts';
import { transfersTo } from '../chain/evidence.ts';
import type { Rpc } from '../chain/rpc.ts';
import { closeRefund, REFUND_LIFE_SECONDS, type RefundOutcome, type RefundParts, whyNotDue } from './pay.ts';
import { readRefund } from './transfer.ts';

interface RecordParts extends Pick<RefundParts, 'chain' | 'terms'> {
  readonly ledger: Pick<PaymentLedger, 'read' | 'advance'>;
  readonly rpc: Rpc;
  readonly time?: Time | undefined;
}

/**
 * @param transaction lower case 0x-hex
 * @param taken what this transaction has sent back already
 * @throws when the node or the store does not answer
 */
export async function recordRefund(
  parts: RecordParts,
  payId: string,
  transaction: string,
  taken: readonly { readonly payment?: { readonly payer: string; readonly amount: string } }[],
): Promise<RefundOutcome> {
  const record = await parts.ledger.read(payId);
  if (record === undefined) return { kind: 'left', why: 'its record is not in this store' };
  // The operator has sent it, whatever may have arrived.
  const why = whyNotDue(record, parts.terms, true);
  if (why !== undefined) return { kind: 'left', why };
  if (record.state === 'refunding') {
    const shown = await readRefund(parts.chain, record);
    if (shown.kind === 'paid') return closeRefund(parts, record, shown.transaction, true);
    if (shown.kind === 'unknown') return { kind: 'pending', why: shown.cause };
    // What was signed may still be sent, and this transfer would be a second one.
    const until = record.changedAt + REFUND_LIFE_SECONDS * 1_000;
    if (shown.kind === 'open' && shown.headTime * 1_000 <= until)
      return {
        kind: 'pending',
        why: `a transfer was signed for it, which can be sent until ${new Date(until).toISOString()}; record it after that`,
      };
  }
  const free = (await transfersBack(parts.rpc, record, transaction)) - taken.filter(sameAs(record)).length;
  if (free < 1)
    return {
      kind: 'left',
      why: `${transaction} does not send ${record.amount} to ${record.payer} after it was paid, or for another refund`,
    };
  return closeRefund(parts, record, transaction, false);
}

/** Transfers of its amount to the payer here, unless they came before the payment. */
async function transfersBack(rpc: Rpc, record: PaymentRecord, transaction: string): Promise<number> {
  const { asset, payer, units, settledAt = 0 } = record;
  const client = clientOver(rpc.call);
  const receipt = await readReceipt(client, transaction);
  if (receipt === undefined) return 0;
  const { timestamp } = await readHead(client, receipt.blockNumber);
  if (timestamp < Math.floor(settledAt / 1_000)) return 0;
  return transfersTo(receipt, { asset, payTo: payer, value: units });
}

function sameAs({ payer, amount }: PaymentRecord) {
  return ({ payment }: { readonly payment?: { readonly payer: string; readonly amount: string } }): boolean =>
    payment?.payer.toLowerCase() === payer.toLowerCase() && payment.amount === amount;
}
