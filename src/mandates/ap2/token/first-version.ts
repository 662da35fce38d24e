import { isObject } from '../../../json/object.ts';
import type { JsonObject } from '../../../json/types.ts';

/** Members that only documents of AP2 v0.1 have: its intent, cart and payment mandates (ap2 2.3). */
const FIRST_VERSION: ReadonlySet<string> = new Set([
  'natural_language_description',
  'intent_expiry',
  'merchant_authorization',
  'payment_mandate_contents',
  'user_authorization',
  'ap2.mandates.IntentMandate',
  'ap2.mandates.CartMandate',
  'ap2.mandates.PaymentMandate',
]);

/** Whether an envelope, or a document that it carries as an object, is one of AP2 v0.1. It is recognised and never read. */
export function hasFirstVersionMember(envelope: JsonObject): boolean {
  return [envelope, envelope['payload'], envelope['payment_mandate']].some(
    (document) => isObject(document) && Object.keys(document).some((name) => FIRST_VERSION.has(name)),
  );
}
