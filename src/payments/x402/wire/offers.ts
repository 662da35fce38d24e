/** The offers of all paid resources: made at start, read by every call with a price. */

import type { Pricing } from '../../pricing/amount.ts';
import type { BuyerTokens, OfferedTerms } from '../../pricing/buyer-token.ts';
import type { BazaarForms } from './bazaar.ts';
import { type ChallengeTemplate, challengeFor } from './challenge.ts';
import { inPlaceUrls } from './in-place.ts';
import { invokeUrl, type OfferTerms, type PricedResource, requirementsFor } from './payment-required.ts';
import type { PaymentRequirements } from './types.ts';

/** What a payment is made for, and what a proof is compared with. */
export interface Agreed {
  readonly requirements: PaymentRequirements;
  /** The canonical invoke URL, the same on every channel. */
  readonly resourceUrl: string;
  /** The URLs of its challenges in place; absent where it is not sold there. */
  readonly inPlace?: RegExp | undefined;
  /** Display units. */
  readonly amount: string;
  readonly currency: string;
}

/** The price of a resource in every form that an answer needs. */
export interface Offer extends Agreed {
  /** Made when it is first asked for: it takes some 8 kB, and few of many resources are asked. */
  readonly challenge: ChallengeTemplate;
  /** Absent: it is in no catalogue. */
  readonly bazaar?: BazaarForms | undefined;
  /** Makes the token of one challenge, which proves these terms wherever it comes back. */
  readonly issueToken: (bind: string | undefined) => string;
}

/** The offers of all paid resources by resource id. */
export type Offers = ReadonlyMap<string, Offer>;

/**
 * Makes an offer for each resource with a price. `tokens`: undefined where none can be paid.
 * `bazaar`: by resource, of those that are to be in catalogues.
 */
export function compileOffers(
  config: {
    readonly merchant: { readonly publicBaseUrl: string };
    readonly resources: readonly (Omit<PricedResource, 'pricing' | 'bazaar'> & {
      readonly pricing: Pricing;
      /** Its URL with `{param}`s, where it is sold in place. */
      readonly address?: string | undefined;
    })[];
    readonly x402: OfferTerms | undefined;
  },
  tokens: Pick<BuyerTokens, 'issue'> | undefined,
  bazaar: ReadonlyMap<string, BazaarForms> = new Map(),
): Offers {
  const offers = new Map<string, Offer>();
  const { x402, merchant } = config;
  if (x402 === undefined || tokens === undefined) return offers;
  for (const resource of config.resources) {
    const { pricing } = resource;
    if (pricing.type === 'free') continue;
    const forms = bazaar.get(resource.id);
    const priced = { ...resource, pricing, bazaar: forms };
    const requirements = requirementsFor(priced, x402);
    const resourceUrl = invokeUrl(merchant.publicBaseUrl, resource.id);
    const terms = offeredTerms(resourceUrl, requirements);
    let challenge: ChallengeTemplate | undefined;
    offers.set(resource.id, {
      requirements,
      resourceUrl,
      inPlace: resource.address === undefined ? undefined : inPlaceUrls(resource.address),
      amount: pricing.amount,
      currency: pricing.currency,
      bazaar: forms,
      get challenge() {
        challenge ??= challengeFor(priced, x402, merchant.publicBaseUrl);
        return challenge;
      },
      issueToken: (bind) => tokens.issue(bind, terms),
    });
  }
  return offers;
}

/** What of an offer may differ from one configuration to the next, as the token covers it. */
export function offeredTerms(
  resourceUrl: string,
  { amount, maxTimeoutSeconds }: Pick<PaymentRequirements, 'amount' | 'maxTimeoutSeconds'>,
): OfferedTerms {
  return { resourceUrl, units: amount, maxTimeoutSeconds };
}
