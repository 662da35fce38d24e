import type { JsonObject } from '../../../json/types.ts';
import type { CheckoutClaims } from '../checkout/checkout-claims.ts';
import { Refused } from '../model/reasons.ts';
import { checkHas, named, readConstraints } from './constraints.ts';
import { assignable, readRequirements } from './line-items.ts';
import { readMerchants } from './merchants.ts';

/** What the checkout is held against. */
type CheckoutRule = (checkout: CheckoutClaims) => boolean;

/** The constraints of open checkout mandates (ap2 2.2). */
const RULES: Readonly<Record<string, (constraint: JsonObject) => CheckoutRule>> = {
  'checkout.allowed_merchants': ({ allowed }) => {
    const merchants = readMerchants(allowed);
    // The id alone: names and sites are easily the same (AP2 issue 315).
    return ({ merchantId }) => merchants.some(({ id }) => id === merchantId);
  },
  'checkout.line_items': ({ items }) => {
    const requirements = readRequirements(items);
    return ({ lineItems }) => lineItems !== undefined && assignable(requirements, lineItems);
  },
};

export const CHECKOUT_CONSTRAINTS: readonly string[] = Object.keys(RULES);

/** Step 13 of ap2 7.6, for one open checkout mandate. @throws Refused */
export function checkCheckoutConstraints(open: JsonObject, checkout: CheckoutClaims): void {
  const rules = readConstraints(open, RULES);
  checkHas(rules, 'checkout.line_items');
  for (const { type, rule } of rules)
    if (!named(type, () => rule(checkout))) throw new Refused('constraint_violated', { constraint: type });
}
