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

/** The terms of a payment, which a proof is compared with. */
export interface Agreed {
  readonly requirements: PaymentRequirements;
  /** The canonical invoke URL, the same on every channel. */
  readonly resourceUrl: string;
  /** Matches its URLs at the backend's own address; absent where it is not sold there. */
  readonly inPlace?: RegExp | undefined;
  /** Display units. */
  readonly amount: string;
  readonly currency: string;
  /**
   * The backend answers before the money moves, so this many seconds must be left of the window of
   * a proof; absent: the money moves first.
   */
  readonly leastSeconds?: number;
  /** These terms with the money first, which a proof may accept too; absent where they are so. */
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
 * Makes an offer for each resource with a price. `tokens` undefined: none can be paid. `bazaar`:
 * the catalogue forms by resource id; a resource without them is in no catalogue. `signer`
 * undefined: the offers are not signed.
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
    /** The room in the head of every 402; absent: `USUAL_ROOM`. */
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

/** The offer of a price; one that is settled after the call has its upfront variant too. */
function offerOfPrice(
  pricing: PricedResource['pricing'],
  timeoutMs: number,
  offerWith: (pricing: PricedResource['pricing']) => Offer,
): Offer {
  const offer = offerWith(pricing);
  if (pricing.settle !== 'after') return offer;
  const { settle: _after, ...before } = pricing;
  // Not spread: a spread would call the getter of the challenge.
  return Object.assign(offer, { leastSeconds: leastSecondsToPay(timeoutMs), upfront: offerWith(before) });
}

/**
 * The challenge of an offer, made when it is first asked for. A signed one is made anew after half
 * of `maxTimeoutSeconds`, not for each 402; its signature outlives every 402 that has it.
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

/** The terms of an offer that may change with the configuration: the token covers them. */
export function offeredTerms(
  resourceUrl: string,
  { amount, maxTimeoutSeconds }: Pick<PaymentRequirements, 'amount' | 'maxTimeoutSeconds'>,
): OfferedTerms {
  return { resourceUrl, units: amount, maxTimeoutSeconds };
}

/** The entry that a facilitator catalogues when it processes a payment. */
export interface BazaarEntry {
  readonly resource: ResourceInfo;
  readonly extension: Extension;
}

/** The entry that goes along with a payment; undefined: none. */
export type EntryOf = (payload: PaymentPayload) => BazaarEntry | undefined;

/**
 * Finds entries by the URL that a payment names. Their content is ours, so clients that echo
 * nothing are catalogued too. Where one URL has two forms, the echo tells which one the client was
 * shown.
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

/** The parts of an offer that decide its entry. */
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

/** Whether a payment is in the asset of an entry of `payments.x402`. */
export function isPaidIn(paid: PaidIn, { network, asset }: PaidIn): boolean {
  return paid.network === network && paid.asset.toLowerCase() === asset.toLowerCase();
}

/** The reason that a payment is in the asset of none of these entries; undefined where it is. */
export function whyElsewhere(paid: PaidIn, entries: readonly PaidIn[]): string | undefined {
  if (entries.some((entry) => isPaidIn(paid, entry))) return undefined;
  const present = entries.map(({ network, asset }) => `${asset} on ${network}`).join(', ');
  return (
    `it was paid in ${paid.asset} on ${paid.network}, and this configuration has ${present}: ` +
    'start a gateway with that configuration to finish it'
  );
}
