/** Compares the checkout of a mandate with the purchase of the call (ap2 7.6, step 12). */

import { type CheckoutClaims, type CommerceClaims, NO_PAYMENT } from '../checkout/checkout-claims.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { inputHash, type Purchase, type PurchasePayment, sameAddress, unitsOf } from '../model/purchase.ts';
import { Refused } from '../model/reasons.ts';

/**
 * The call was resolved without the checkout, so nothing of it changes what is bought. Returns the
 * minor units of the price.
 * @throws Refused
 */
export function checkPurchase(checkout: CheckoutClaims, purchase: Purchase, profile: Ap2Profile): number {
  const { commerce } = checkout;
  if (commerce.resourceId !== purchase.resourceId) throw new Refused('resource_mismatch');
  if (commerce.inputHash !== inputHash(purchase.input)) throw new Refused('input_mismatch');
  // As text: a price has one spelling here, and the person saw this one.
  if (commerce.amount !== purchase.price.amount) throw new Refused('amount_mismatch');
  const { currency } = purchase.price;
  if (commerce.currency !== currency || (checkout.currency ?? currency) !== currency)
    throw new Refused('currency_mismatch');
  const units = unitsOf(purchase, profile);
  // The person sees the total: it must be the price.
  if (checkout.total !== undefined && checkout.total !== units) throw new Refused('amount_mismatch');
  if (!samePayment(commerce, purchase.payment)) throw new Refused('payment_method_mismatch');
  if (checkout.merchantId !== undefined && checkout.merchantId !== profile.merchant.id)
    throw new Refused('payee_mismatch');
  return units;
}

function samePayment(
  { paymentMethod, network, asset, destination }: CommerceClaims,
  payment: PurchasePayment | undefined,
): boolean {
  if (payment === undefined)
    return paymentMethod === NO_PAYMENT && network === undefined && asset === undefined && destination === undefined;
  return (
    paymentMethod === payment.method &&
    network === payment.network &&
    sameAddress(asset, payment.asset) &&
    sameAddress(destination, payment.payTo)
  );
}
