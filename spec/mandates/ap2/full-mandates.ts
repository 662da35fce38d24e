/** Mandates with every member that AP2 has, for specs that change one of them. */

import type { MandateVerdict } from '../../../src/mandates/ap2/reasons.ts';
import { amountRange, budget, plain, recurrence } from '../../../tools/mandate/maker/constraints.ts';
import { changed, type Hand } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { purchaseWith } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { type Wishes, withReference } from '../../support/ap2/wishes.ts';

const mint = createMint();
const verify = verifierFor(mint);

const { network = '', payer = '' } = purchaseWith().payment ?? {};
const SHOP = { id: 'test-shop', name: 'Test Shop', website: 'https://www.shop.example' };
const ACCOUNT = { id: `${network}:${payer}`, type: 'x402', description: 'wallet' };
const PISP = { legal_name: 'Pay Ltd', brand_name: 'Pay', domain_name: 'pay.example' };
const ITEM = { id: 'market_report', title: 'Market report' };
const CLOSED = { payee: SHOP, payment_instrument: ACCOUNT, pisp: PISP, execution_date: '2026-11-20', risk_data: {} };

/** Open and closed mandates with every member there is, none withheld, with these hands on them. */
function presented(hands: Wishes['hands'] = {}): string {
  const constraints = [
    plain({ type: 'checkout.line_items', items: [{ id: 'line_1', acceptable_items: [ITEM], quantity: 1 }] }),
    plain({ type: 'checkout.allowed_merchants', allowed: [SHOP] }),
  ];
  const paymentConstraints = withReference(
    amountRange('USDC', 10_000, 1),
    plain({ type: 'payment.allowed_payees', allowed: [SHOP] }),
    plain({ type: 'payment.allowed_payment_instruments', allowed: [ACCOUNT] }),
    plain({ type: 'payment.allowed_pisps', allowed: [PISP] }),
    plain({ type: 'payment.execution_date', not_before: '2026-11-20', not_after: '2026-11-20' }),
    budget('USDC', 1),
    recurrence('DAILY', 3),
  );
  const { closedPayment: last } = hands;
  const closedPayment: Hand = {
    content({ mandate, disclosures }) {
      const whole = { mandate: changed(mandate, CLOSED), disclosures };
      return last?.content?.(whole) ?? whole;
    },
  };
  return mint.autonomous({ payment: true, constraints, paymentConstraints, hands: { ...hands, closedPayment } }).header;
}

/** The verdict on mandates with every member, changed by these hands. */
export function verdictOn(hands: Wishes['hands']): Promise<MandateVerdict> {
  return verify(presented(hands));
}
