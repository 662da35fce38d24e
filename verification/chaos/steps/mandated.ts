/** A site whose resource needs a mandate, and a call that pays for it. */

import assert from 'node:assert/strict';
import type { Body } from '../../../spec/e2e/mandate-channels.ts';
import { now, trusting } from '../../../spec/e2e/mandate-seller.ts';
import { leaf } from '../../../spec/e2e/mandate-testbed.ts';
import { createMint, type Mint } from '../../../spec/support/ap2/mint.ts';
import { profileWith } from '../../../spec/support/ap2/purchase.ts';
import type { Presentation } from '../../../spec/support/ap2/wishes.ts';
import { CURRENCY } from '../../../spec/support/config.ts';
import type { Ap2Profile } from '../../../src/mandates/ap2/model/profile.ts';
import type { Purchase as Wanted } from '../../../src/mandates/ap2/model/purchase.ts';
import { amountRange, budget, recurrence, reference } from '../../../tools/mandate/maker/constraints.ts';
import { type PaidCall, signedCall } from './buyer.ts';
import type { Ground } from './ground.ts';
import type { Purchase } from './purchases.ts';
import { openSite, type Site, type SiteParts } from './site.ts';

/** A site whose resource needs a mandate, and its calls. */
export interface MandatedSite extends Site {
  /**
   * Asks for the price, signs for it, and makes a mandate for the purchase that covers two more.
   */
  mandatedCall(purchase: Purchase, key?: string): Promise<Mandated>;
}

export interface Mandated extends PaidCall {
  readonly mandate: string;
  /** Its name in receipts. */
  readonly reference: string;
}

const TITLE = 'Market report';
const PRICE = '0.01';
const EXPONENT = 6;

/** Prepares a site that trusts a mandate issuer of its own. */
export async function openMandatedSite(
  ground: Ground,
  where: Pick<SiteParts, 'store' | 'rail'>,
): Promise<MandatedSite> {
  const mint = createMint();
  const site = await openSite(ground, { ...where, overrides: trusting(mint, ['market_report']) });
  return {
    ...site,
    async mandatedCall(purchase, key) {
      const call = await signedCall(ground, site, purchase.resourceId, purchase.input, key);
      const made = await mandateFor(ground, site, mint, call);
      return { ...call, mandate: made.header, reference: leaf(made) };
    },
  };
}

/**
 * Makes a mandate for a new checkout of the call, by an agent that knows the merchant by that
 * checkout alone.
 */
async function mandateFor({ buyer }: Ground, site: Site, mint: Mint, call: PaidCall): Promise<Presentation> {
  const checkoutJwt = await checkoutFor(site, call);
  const { aud, iss, merchant: backend, agent_commerce: commerce } = payloadOf(checkoutJwt);
  const { network, asset, destination: payTo } = commerce;
  const purchase: Wanted = {
    resourceId: call.resourceId,
    title: TITLE,
    input: JSON.parse(call.input),
    price: { amount: PRICE, currency: CURRENCY },
    payment: { method: 'x402', network, asset, payTo, payer: buyer.address.toLowerCase(), nonce: undefined },
  };
  const profile = profileWith({
    audience: aud,
    issuer: iss,
    merchant: backend,
    exponents: new Map([[CURRENCY, EXPONENT]]),
  });
  const units = Number(call.units);
  const paymentConstraints = (hash: string) => [
    amountRange(CURRENCY, units),
    budget(CURRENCY, 3 * Number(PRICE)),
    recurrence('ON_DEMAND', 3),
    reference(hash),
  ];
  return mint.autonomous({ now: now(), profile, purchase, checkoutJwt, payment: true, paymentConstraints });
}

interface CheckoutPayload {
  readonly aud: string;
  readonly iss: string;
  readonly merchant: Ap2Profile['merchant'];
  readonly agent_commerce: { readonly network: string; readonly asset: string; readonly destination: string };
}

async function checkoutFor({ baseUrl }: Site, { resourceId, input }: PaidCall): Promise<string> {
  const response = await fetch(`${baseUrl}/api/resources/${resourceId}/invoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: input,
  });
  const { authorization } = (await response.json()) as Body;
  return authorization?.required[0].checkoutJwt ?? assert.fail(`${resourceId} asks for no mandate`);
}

function payloadOf(jwt: string): CheckoutPayload {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()) as CheckoutPayload;
}
