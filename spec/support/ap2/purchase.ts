/** The purchase, the profile and the time for which test mandates are made. */

import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../src/json/json.ts';
import { canonicalJson } from '../../../src/json/json.ts';
import type { Ap2Profile, Purchase } from '../../../src/mandates/ap2/purchase.ts';

/** When tests of mandates take place: 2026-11-20T12:00:00Z, unix seconds. */
export const NOW = 1_795_176_000;

export const AUDIENCE = 'https://shop.example';
export const MERCHANT = { id: 'test-shop', name: 'Test Shop', website: 'https://www.shop.example' } as const;
/** Base units of one token. */
const USDC_EXPONENT = 6;

/** The demands of the test gateway. */
export function profileWith(changes: Partial<Ap2Profile> = {}): Ap2Profile {
  return {
    audience: AUDIENCE,
    issuer: AUDIENCE,
    merchant: MERCHANT,
    clockSkewSeconds: 60,
    maxPresentationAgeSeconds: 300,
    maxEnvelopeBytes: 12_288,
    algorithms: new Set(['ES256']),
    checkoutTtlSeconds: 300,
    exponents: new Map([
      ['USDC', USDC_EXPONENT],
      ['USD', 2],
      ['XXX', 0],
    ]),
    policy: { paymentMandate: 'optional', bindPaymentNonce: false },
    ...changes,
  };
}

/** One report for a cent. */
export function purchaseWith(changes: Partial<Purchase> = {}): Purchase {
  return {
    resourceId: 'market_report',
    title: 'Market report',
    input: { city: 'Berlin', days: 3 },
    price: { amount: '0.01', currency: 'USDC' },
    payment: {
      method: 'x402',
      network: 'eip155:84532',
      asset: '0x8953a7d2aceaa86f8b3efb5c34458704eec37a77',
      payTo: '0x6a205d4423d4fed646eff1f3627ba7594bc43444',
      payer: '0x13f9855a49dea6e061d1ceb21ff824629c145eb5',
      nonce: `0x${'5'.repeat(64)}`,
    },
    ...changes,
  };
}

/** The same for nothing. */
export function freePurchase(changes: Partial<Purchase> = {}): Purchase {
  return purchaseWith({ price: { amount: '0', currency: 'USDC' }, payment: undefined, ...changes });
}

/** Minor units of a decimal amount, by moving the point of its text. */
export function minorUnits(amount: string, exponent: number): number {
  const [whole = '', fraction = ''] = amount.split('.');
  if (fraction.length > exponent) throw new Error(`${amount} has more than ${exponent} digits behind the point`);
  return Number(`${whole}${fraction.padEnd(exponent, '0')}`);
}

/**
 * Head and claims of the checkout of a purchase, as the merchant would sign it; written apart from
 * the gateway's own.
 */
export function checkoutOf(
  { resourceId, title, input, price, payment }: Purchase,
  profile: Ap2Profile,
  { now, jti, kid }: { readonly now: number; readonly jti: string; readonly kid: string },
): { readonly header: JsonObject; readonly claims: JsonObject } {
  const { amount, currency } = price;
  const units = minorUnits(amount, profile.exponents.get(currency) ?? 0);
  const totals = [{ type: 'total', amount: units }];
  const paid =
    payment === undefined
      ? { payment_method: 'none' }
      : { payment_method: 'x402', network: payment.network, asset: payment.asset, destination: payment.payTo };
  const claims = {
    iss: profile.issuer,
    aud: profile.audience,
    iat: now,
    exp: now + profile.checkoutTtlSeconds,
    jti,
    id: `chk_${jti.slice(0, 8)}`,
    status: 'ready_for_complete',
    currency,
    merchant: { ...profile.merchant },
    line_items: [{ id: 'li_1', item: { id: resourceId, title, price: units }, quantity: 1, totals }],
    totals,
    links: [],
    agent_commerce: {
      profile: 'agent-commerce/ap2/checkout/v1',
      resource_id: resourceId,
      input_hash: createHash('sha256').update(canonicalJson(input)).digest('base64url'),
      amount,
      currency,
      ...paid,
    },
  };
  return { header: { alg: 'ES256', typ: 'checkout+jwt', kid }, claims };
}
