import { receiptId } from '../../receipts/id.ts';

/** The largest moment that an id can hold, milliseconds. */
const LATEST_MS = 2 ** 48 - 1;

/**
 * The id of a payment's receipt. It follows from the authorization alone, so whoever meets the payment, the call that was paid, a later one
 * after the store was lost, or a search through the chain, writes the same receipt, in whatever order they come. Ids still sort by time:
 * clients let an authorization live as long as the offer asks, so that long before its end it was signed.
 * @param payId replay key, SHA-256 hex
 * @param validBefore of the authorization, Unix seconds
 * @param lifeSeconds `maxTimeoutSeconds` of the offer
 */
export function paymentReceiptId(payId: string, validBefore: number, lifeSeconds: number): string {
  const signedMs = Math.max(0, validBefore - lifeSeconds) * 1_000;
  return receiptId(Math.min(signedMs, LATEST_MS), Buffer.from(payId, 'hex').subarray(0, 16));
}
