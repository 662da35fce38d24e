/** The offers of all paid resources: made at start, read by every call with a price. */

import type { Json } from '../../../json/json.ts';
import type { Pricing } from '../../pricing/amount.ts';
import type { BuyerTokens, OfferedTerms } from '../../pricing/buyer-token.ts';
import {
  type ChallengeTemplate,
  challengeFor,
  type HeadRoom,
  inPlaceUrls,
  invokeUrl,
  type OfferTerms,
  type PricedResource,
  requirementsFor,
} from './challenge.ts';
import { BAZAAR, isOfTool, leastSecondsToPay } from './proof.ts';
import type { BazaarForms, Extension, PaymentPayload, PaymentRequirements, ResourceInfo } from './types.ts';

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
  /**
   * The backend answers before the money moves, so this many seconds must be left of the window of
   * a proof; absent: the money moves first.
   */
  readonly leastSeconds?: number;
  /** The same with the money first, which a proof may accept instead; absent where it is so. */
  readonly upfront?: Agreed;
}

/** The price of a resource in every form that an answer needs. */
export interface Offer extends Agreed {
  readonly upfront?: Offer;
  /** Made when it is first asked for: it takes some 8 kB, and few of many resources are asked. */
  readonly challenge: ChallengeTemplate;
  /** Absent: it is in no catalogue. */
  readonly bazaar?: BazaarForms | undefined;
  /** Makes the token of one challenge, which proves these terms wherever it comes back. */
  readonly issueToken: (bind: string | undefined, answerOf?: string) => string;
}

/** Signs offers; `now` in Unix milliseconds. */
export interface OfferSigner {
  /** Undefined: it cannot be signed. `validUntil`: Unix seconds. */
  sign(requirements: PaymentRequirements, resourceUrl: string, validUntil: number): Extension | undefined;
  now(): number;
}

/** The offers of all paid resources by resource id. */
export type Offers = ReadonlyMap<string, Offer>;

/**
 * Makes an offer for each resource with a price. `tokens`: undefined where none can be paid.
 * `bazaar`: by resource, of those that are to be in catalogues. `signer`: signs the offers;
 * undefined: they are not signed.
 */
export function compileOffers(
  config: {
    readonly merchant: { readonly publicBaseUrl: string };
    readonly resources: readonly (Omit<PricedResource, 'pricing' | 'bazaar'> & {
      readonly pricing: Pricing;
      /** Its URL with `{param}`s, where it is sold in place. */
      readonly address?: string | undefined;
      readonly backend: { readonly timeoutMs: number };
    })[];
    readonly x402: OfferTerms | undefined;
    /** Of every 402; absent: that of usual proxies. */
    readonly headRoom?: HeadRoom;
  },
  tokens: Pick<BuyerTokens, 'issue'> | undefined,
  bazaar: ReadonlyMap<string, BazaarForms> = new Map(),
  signer?: OfferSigner,
): Offers {
  const offers = new Map<string, Offer>();
  const { x402, merchant } = config;
  if (x402 === undefined || tokens === undefined) return offers;
  for (const resource of config.resources) {
    const { pricing } = resource;
    if (pricing.type === 'free') continue;
    const forms = bazaar.get(resource.id);
    const priced = { ...resource, pricing, bazaar: forms };
    const resourceUrl = invokeUrl(merchant.publicBaseUrl, resource.id);
    const inPlace = resource.address === undefined ? undefined : inPlaceUrls(resource.address);
    const offerWith = (pricing: PricedResource['pricing']): Offer => {
      const sold = { ...priced, pricing };
      const requirements = requirementsFor(sold, x402);
      const terms = offeredTerms(resourceUrl, requirements);
      const challenge = renewed(signer, requirements, resourceUrl, (signed) =>
        challengeFor(sold, x402, merchant.publicBaseUrl, signed, config.headRoom),
      );
      return {
        requirements,
        ...{ resourceUrl, inPlace, bazaar: forms },
        ...{ amount: pricing.amount, currency: pricing.currency },
        get challenge() {
          return challenge();
        },
        issueToken: (bind, answerOf) => tokens.issue(bind, terms, answerOf),
      };
    };
    offers.set(resource.id, offerOfPrice(pricing, resource.backend.timeoutMs, offerWith));
  }
  return offers;
}

/** The offer of a price; of one that is settled after the call also what takes its place. */
function offerOfPrice(
  pricing: PricedResource['pricing'],
  timeoutMs: number,
  offerWith: (pricing: PricedResource['pricing']) => Offer,
): Offer {
  const offer = offerWith(pricing);
  if (pricing.settle !== 'after') return offer;
  const { settle: _after, ...before } = pricing;
  // Not spread: its challenge is made when it is first asked for.
  return Object.assign(offer, { leastSeconds: leastSecondsToPay(timeoutMs), upfront: offerWith(before) });
}

/**
 * The challenge of an offer, made when it is first asked for. A signed one is made anew when half
 * of its time is over, and not for each 402: what was signed last is valid for as long as every 402
 * with it.
 */
function renewed(
  signer: OfferSigner | undefined,
  requirements: PaymentRequirements,
  resourceUrl: string,
  make: (signed: Extension | undefined) => ChallengeTemplate,
): () => ChallengeTemplate {
  let challenge: ChallengeTemplate | undefined;
  if (signer === undefined) {
    return () => {
      challenge ??= make(undefined);
      return challenge;
    };
  }
  let renewAt = 0;
  return () => {
    const now = Math.floor(signer.now() / 1_000);
    if (challenge === undefined || now >= renewAt) {
      const half = Math.ceil(requirements.maxTimeoutSeconds / 2);
      challenge = make(signer.sign(requirements, resourceUrl, now + requirements.maxTimeoutSeconds + half));
      renewAt = now + half;
    }
    return challenge;
  };
}

/** What of an offer may differ from one configuration to the next, as the token covers it. */
export function offeredTerms(
  resourceUrl: string,
  { amount, maxTimeoutSeconds }: Pick<PaymentRequirements, 'amount' | 'maxTimeoutSeconds'>,
): OfferedTerms {
  return { resourceUrl, units: amount, maxTimeoutSeconds };
}

/** What a facilitator catalogues when it processes a payment. */
export interface BazaarEntry {
  readonly resource: ResourceInfo;
  readonly extension: Extension;
}

/** The entry that goes along with a payment; undefined: none. */
export type EntryOf = (payload: PaymentPayload) => BazaarEntry | undefined;

/**
 * Finds entries by the URL that a payment names. Their content is ours: a client could only echo
 * it, and clients that echo nothing are catalogued too. The echo says alone which form was shown
 * where one URL has two.
 */
export function entriesOf(offers: Iterable<OfferForms>): EntryOf {
  const listed = [...offers].filter((offer): offer is Required<OfferForms> => offer.bazaar !== undefined);
  const byInvoke = new Map(listed.map(({ resourceUrl, bazaar }) => [resourceUrl, bazaar]));
  return ({ resource, extensions }) => {
    if (resource === undefined) return undefined;
    const { url } = resource;
    const invoked = byInvoke.get(url);
    if (invoked === undefined) {
      const sold = listed.find(({ inPlace }) => inPlace?.test(url))?.bazaar;
      return sold && entry(sold, url, sold.inPlace);
    }
    const { invoke, tool } = invoked;
    return tool !== undefined && (invoke === undefined || isOfTool(extensions?.[BAZAAR] as Json | undefined))
      ? entry(invoked, tool.url, tool.extension)
      : entry(invoked, url, invoke);
  };
}

/** What of an offer decides its entry. */
interface OfferForms {
  readonly resourceUrl: string;
  readonly inPlace?: RegExp | undefined;
  readonly bazaar?: BazaarForms | undefined;
}

function entry({ about }: BazaarForms, url: string, extension: Extension | undefined): BazaarEntry | undefined {
  return extension && { resource: { url, ...about }, extension };
}

interface PaidIn {
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
}

/** Why a payment is of no asset of this configuration; undefined where it is. */
export function whyElsewhere(paid: PaidIn, { network, asset }: PaidIn): string | undefined {
  return paid.network === network && paid.asset.toLowerCase() === asset.toLowerCase()
    ? undefined
    : `it was paid in ${paid.asset} on ${paid.network}, and this configuration has ${asset} on ${network}: ` +
        'start a gateway with that configuration to finish it';
}
