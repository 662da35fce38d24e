/** The offers of all paid resources: made at start, read by every call with a price. */

import type { Json } from '../../../json/json.ts';
import { RecentMap } from '../../../time/recent-map.ts';
import { formatAmount, type Price, type Pricing, rescaled } from '../../pricing/amount.ts';
import type { BuyerTokens, OfferedTerms } from '../../pricing/buyer-token.ts';
import type { PriceRule } from '../../pricing/by-input.ts';
import {
  type Accepts,
  type AllAccepts,
  type ChallengeTemplate,
  challengeFor,
  type FixedPricing,
  type HeadRoom,
  inPlaceUrls,
  invokeUrl,
  type OfferTerms,
  type PricedResource,
  requirementsFor,
} from './challenge.ts';
import { BAZAAR, isOfTool, leastSecondsToPay } from './proof.ts';
import type { X402Config } from './settings.ts';
import type { BazaarForms, Extension, PaymentPayload, PaymentRequirements, ResourceInfo } from './types.ts';

/** The terms of a payment, which a proof is compared with. */
export interface Agreed extends Accepts {
  /** The canonical invoke URL, the same on every channel. */
  readonly resourceUrl: string;
  /** Matches its URLs at the backend's own address; absent where it is not sold there. */
  readonly inPlace?: RegExp | undefined;
  /**
   * The backend answers before the money moves, so this many seconds must be left of the window of
   * a proof; absent: the money moves first.
   */
  readonly leastSeconds?: number;
}

/** Terms that a proof may accept now. */
export interface Offered extends Agreed {
  /** Index of its entry of `payments.x402`. */
  readonly entry: number;
  /** Decimals of the asset. */
  readonly decimals: number;
  /** These terms with the money first, which a proof may accept too; absent where they are so. */
  readonly upfront?: Offered;
  /** The same sale in further assets, in the merchant's order. */
  readonly others: readonly Offered[];
  /** The same sale in assets that are not offered: it finds payments that were made before. */
  readonly ended?: readonly Offered[] | undefined;
  /** The price follows the input: the token of a 402 counts for its own input alone. */
  readonly followsInput: boolean;
}

/** The price of a resource in every form that an answer needs. */
export interface Offer extends Offered {
  readonly upfront?: Offer;
  /** Made when it is first asked for: it takes some 8 kB, and few of many resources are asked. */
  readonly challenge: ChallengeTemplate;
  /** Absent: it is in no catalogue. */
  readonly bazaar?: BazaarForms | undefined;
  /** How the price follows the input; absent: it is the same for all. */
  readonly byInput?: PriceByInput | undefined;
  /** It has the lowest of the prices that follow the input, so no input is bought with it. */
  readonly isLowest: boolean;
  /**
   * Makes the token of one challenge, which proves these terms wherever it comes back. It names the
   * price in the first asset; `tokenTerms` finds it for the others.
   */
  readonly issueToken: (bind: string | undefined, answerOf?: string) => string;
}

/** The offers of a resource whose price follows the input. */
interface PriceByInput {
  readonly rule: PriceRule;
  /** The offer at a price, in base units of the first asset. */
  at(units: bigint): Offer;
}

/** Signs offers; `now` in Unix milliseconds. */
export interface OfferSigner {
  /** Undefined: they cannot be signed. `validUntil`: Unix seconds. */
  sign(accepts: readonly PaymentRequirements[], resourceUrl: string, validUntil: number): Extension | undefined;
  now(): number;
}

/** The offers of all paid resources by resource id. */
export type Offers = ReadonlyMap<string, Offer>;

/** The settlement terms of one entry of `payments.x402`. */
type EntryTerms = OfferTerms & Pick<X402Config, 'assetDecimals'>;

interface OfferSettings {
  readonly merchant: { readonly publicBaseUrl: string };
  readonly resources: readonly (Omit<PricedResource, 'bazaar'> & {
    readonly pricing: Pricing;
    /** Its URL with `{param}`s, where it is sold in place. */
    readonly address?: string | undefined;
    readonly backend: { readonly timeoutMs: number };
  })[];
  readonly x402: EntryTerms | undefined;
  readonly alternatives?: readonly EntryTerms[];
  /** The room in the head of every 402; absent: `USUAL_ROOM`. */
  readonly headRoom?: HeadRoom;
}

/** The parts of offers beside their terms. */
interface OfferParts {
  /** Catalogue forms by resource id; a resource without them is in no catalogue. */
  readonly bazaar?: ReadonlyMap<string, BazaarForms>;
  /** Undefined: the offers are not signed. */
  readonly signer?: OfferSigner | undefined;
  /** The entries of `payments.x402` that cannot be paid now; asked for each 402. */
  readonly away?: () => ReadonlySet<number>;
}

const NONE_AWAY: ReadonlySet<number> = new Set();

/** Most offers at prices that were asked for lately; one with a challenge takes some 8 kB. */
const REMEMBERED_PRICES = 1_024;

/** Makes an offer for each resource with a price. `tokens` undefined: none can be paid. */
export function compileOffers(
  config: OfferSettings,
  tokens: Pick<BuyerTokens, 'issue'> | undefined,
  { bazaar = new Map(), signer, away = () => NONE_AWAY }: OfferParts = {},
): Offers {
  const offers = new Map<string, Offer>();
  const { x402, alternatives = [], merchant } = config;
  if (x402 === undefined || tokens === undefined) return offers;
  const entries = [x402, ...alternatives];
  const termsOf = ({ entry = 0 }: Price): EntryTerms => entries[entry] ?? x402;
  const atPrices = new RecentMap<Offer>(REMEMBERED_PRICES);
  for (const resource of config.resources) {
    const { id, pricing } = resource;
    if (pricing.type === 'free') continue;
    const { by: rule } = pricing;
    const forms = bazaar.get(id);
    const resourceUrl = invokeUrl(merchant.publicBaseUrl, id);
    const inPlace = resource.address === undefined ? undefined : inPlaceUrls(resource.address);
    const offerWith = (priced: FixedPricing, isLowest: boolean): Offer => {
      const inEntry = (price: Price): Omit<Offered, 'upfront'> => {
        const { amount, currency, units, entry = 0 } = price;
        const { assetDecimals: decimals, ...terms } = termsOf(price);
        const requirements = requirementsFor(units, priced.settle, terms);
        const followsInput = rule !== undefined;
        return { entry, decimals, requirements, amount, currency, resourceUrl, inPlace, others: [], followsInput };
      };
      const first = inEntry(priced);
      const others = (priced.others ?? []).map(inEntry);
      const terms = offeredTerms(first);
      const sold = { ...resource, bazaar: forms, isLowest };
      const challenge = whichShown([first, ...others], away, (shown) =>
        renewed(signer, shown, resourceUrl, (signed) =>
          challengeFor(sold, shown, merchant.publicBaseUrl, signed, config.headRoom),
        ),
      );
      return {
        ...first,
        others,
        ended: priced.ended?.map(inEntry),
        bazaar: forms,
        byInput,
        isLowest,
        get challenge() {
          return challenge();
        },
        issueToken: (bind, answerOf) => tokens.issue(bind, terms, answerOf),
      };
    };
    const offerAt = (priced: FixedPricing, isLowest: boolean): Offer =>
      offerOfPrice(priced, resource.backend.timeoutMs, (one) => offerWith(one, isLowest));
    const byInput: PriceByInput | undefined = rule && {
      rule,
      at(units) {
        const name = `${units} ${id}`;
        const offer =
          atPrices.use(name) ??
          offerAt(
            pricedAt(pricing, units, (price) => termsOf(price).assetDecimals),
            false,
          );
        atPrices.add(name, offer);
        return offer;
      },
    };
    offers.set(id, offerAt(pricing, rule !== undefined));
  }
  return offers;
}

/** A pricing at a price in base units of its first asset. */
function pricedAt(pricing: FixedPricing, first: bigint, decimalsOf: (price: Price) => number): FixedPricing {
  const priceIn = (price: Price): Price => {
    const decimals = decimalsOf(price);
    const units = rescaled(first, decimalsOf(pricing), decimals);
    return { ...price, units, amount: formatAmount(units, decimals) };
  };
  const ended = pricing.ended && { ended: pricing.ended.map(priceIn) };
  return { ...pricing, ...priceIn(pricing), others: (pricing.others ?? []).map(priceIn), ...ended };
}

/**
 * The challenge of the entries that can be paid now, of all where none can. One is made for each
 * selection, when it is first asked for.
 */
function whichShown(
  all: readonly [Offered, ...Offered[]],
  away: () => ReadonlySet<number>,
  challengeOf: (shown: AllAccepts) => () => ChallengeTemplate,
): () => ChallengeTemplate {
  const whole = challengeOf(all);
  if (all.length === 1) return whole;
  const some = new Map<string, () => ChallengeTemplate>();
  return () => {
    const gone = away();
    const [first, ...rest] = gone.size === 0 ? all : all.filter(({ entry }) => !gone.has(entry));
    if (first === undefined || rest.length === all.length - 1) return whole();
    const name = [first, ...rest].map(({ entry }) => entry).join();
    const template = some.get(name) ?? challengeOf([first, ...rest]);
    some.set(name, template);
    return template();
  };
}

/** The offer of a price; one that is settled after the call has its upfront variant too. */
function offerOfPrice(pricing: FixedPricing, timeoutMs: number, offerWith: (pricing: FixedPricing) => Offer): Offer {
  const offer = offerWith(pricing);
  if (pricing.settle !== 'after') return offer;
  const { settle: _after, ...before } = pricing;
  const upfront = offerWith(before);
  const leastSeconds = leastSecondsToPay(timeoutMs);
  const others = offer.others.map((one, index) => ({ ...one, leastSeconds, upfront: upfront.others[index] }));
  const ended = offer.ended?.map((one, index) => ({ ...one, leastSeconds, upfront: upfront.ended?.[index] }));
  // Not spread: a spread would call the getter of the challenge.
  return Object.assign(offer, { leastSeconds, upfront, others, ended });
}

/**
 * The challenge of an offer, made when it is first asked for. A signed one is made anew after half
 * of the shortest `maxTimeoutSeconds`, not for each 402; its signatures outlive every 402 that has
 * them.
 */
function renewed(
  signer: OfferSigner | undefined,
  shown: AllAccepts,
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
  const accepts = shown.map(({ requirements }) => requirements);
  const lasts = accepts.map(({ maxTimeoutSeconds }) => maxTimeoutSeconds);
  const half = Math.ceil(Math.min(...lasts) / 2);
  let renewAt = 0;
  return () => {
    const now = Math.floor(signer.now() / 1_000);
    if (challenge === undefined || now >= renewAt) {
      challenge = make(signer.sign(accepts, resourceUrl, now + Math.max(...lasts) + half));
      renewAt = now + half;
    }
    return challenge;
  };
}

/** The offer in the asset that a proof accepts; undefined: nothing is offered in it. */
export function offeredIn(offer: Offered, paid: PaidIn): Offered | undefined {
  return [offer, ...offer.others].find(({ requirements }) => isPaidIn(requirements, paid));
}

/**
 * The terms that a token must show for a proof: those of the first asset, which the token of every
 * challenge names. No token shows terms without units.
 */
export function tokenTerms(
  offer: Offered,
  accepted: Pick<PaymentRequirements, 'network' | 'asset' | 'amount' | 'maxTimeoutSeconds'>,
): OfferedTerms {
  const { requirements, currency, decimals } = offer;
  const own = offeredIn(offer, accepted) ?? offer;
  if (own === offer) return offeredTerms(offer, accepted);
  const units = BigInt(accepted.amount);
  const { maxTimeoutSeconds } = requirements;
  const none = offeredTerms(offer, { amount: '', maxTimeoutSeconds });
  // The token covers the time of the first asset alone.
  if (accepted.maxTimeoutSeconds !== own.requirements.maxTimeoutSeconds) return none;
  if (units === BigInt(own.requirements.amount)) return offeredTerms(offer, requirements);
  const first = rescaled(units, own.decimals, decimals);
  // A rounded price and one in another currency were never offered by this token.
  const isShown = own.currency === currency && rescaled(first, decimals, own.decimals) === units;
  return isShown ? offeredTerms(offer, { amount: first.toString(), maxTimeoutSeconds }) : none;
}

type NamedTerms = Pick<Offered, 'resourceUrl' | 'entry' | 'requirements' | 'followsInput'>;

/** The terms of an offer that may change with the configuration: the token covers them. */
export function offeredTerms(
  { resourceUrl, entry, requirements, followsInput }: NamedTerms,
  { amount, maxTimeoutSeconds }: Pick<PaymentRequirements, 'amount' | 'maxTimeoutSeconds'> = requirements,
): OfferedTerms {
  const { network, asset } = requirements;
  const paidIn = entry === 0 ? {} : { paidIn: `${network} ${asset}` };
  return { resourceUrl, units: amount, maxTimeoutSeconds, ...paidIn, ...(followsInput ? { followsInput } : {}) };
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
