import type { JsonObject } from '../../../src/json/types.ts';
import type { Constraint, Merchant } from './constraints.ts';
import { type Disclosure, discloseMember, hashOf } from './tokens.ts';

/** What a mandate says, before it is put into a token. */
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

/**
 * The members of a public key that `cnf` carries: a verifier refuses everything that is private.
 */
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

/** Agrees to one checkout of a merchant; `times` where no hop says how long it holds. */
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
  /** Address of whoever pays. */
  readonly payer: string;
}

/** Agrees to one payment for one checkout; `times` where no hop says how long it holds. */
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
