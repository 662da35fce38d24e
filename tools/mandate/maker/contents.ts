/** The contents of test mandates (ap2 2.1), before they are put into tokens. */

import type { JsonObject } from '../../../src/json/json.ts';
import type { Constraint, Merchant } from './constraints.ts';
import { type Disclosure, discloseMember, hashOf } from './tokens.ts';

/** A mandate, with the disclosures of its own members. */
export interface Content {
  readonly mandate: JsonObject;
  readonly disclosures: readonly Disclosure[];
}

export const VCT = {
  openCheckout: 'mandate.checkout.open.1',
  closedCheckout: 'mandate.checkout.1',
  openPayment: 'mandate.payment.open.1',
  closedPayment: 'mandate.payment.1',
} as const;

/** The members of a public key that `cnf` carries: a verifier refuses private ones. */
export interface PublicPoint {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y?: string;
}

/** What an agent may do until `exp`, unix seconds. */
export function openMandate(
  vct: string,
  constraints: readonly Constraint[],
  { holder, iat, exp }: { readonly holder: PublicPoint; readonly iat: number; readonly exp: number },
): Content {
  const { kty, crv, x, y } = holder;
  const jwk = { kty, crv, x, ...(y === undefined ? {} : { y }) };
  const bodies = constraints.map(({ body }) => body);
  return {
    mandate: { vct, constraints: bodies, cnf: { jwk }, iat, exp },
    disclosures: constraints.flatMap(({ disclosures }) => disclosures),
  };
}

/** For one checkout of a merchant; `times` where no hop limits its validity. */
export function closedCheckout(checkoutJwt: string, times: JsonObject = {}): Content {
  const checkout = discloseMember('checkout_jwt', checkoutJwt);
  return {
    mandate: {
      _sd: [checkout.digest],
      vct: VCT.closedCheckout,
      checkout_hash: hashOf(checkoutJwt),
      ...times,
    },
    disclosures: [checkout],
  };
}

/** One payment. */
export interface PaymentTerms {
  readonly checkoutJwt: string;
  readonly payee: Merchant;
  /** Minor units. */
  readonly amount: number;
  readonly currency: string;
  /** CAIP-2. */
  readonly network: string;
  /** The address that pays. */
  readonly payer: string;
}

/** For one payment of one checkout; `times` where no hop limits its validity. */
export function closedPayment(terms: PaymentTerms, times: JsonObject = {}): Content {
  const { checkoutJwt, payee, amount, currency, network, payer } = terms;
  const mandate = {
    vct: VCT.closedPayment,
    transaction_id: hashOf(checkoutJwt),
    payee: { ...payee },
    payment_amount: { amount, currency },
    payment_instrument: { id: `${network}:${payer}`, type: 'x402' },
    ...times,
  };
  return { mandate, disclosures: [] };
}
