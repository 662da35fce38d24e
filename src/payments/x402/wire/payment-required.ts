/** Builds the PaymentRequired document of a resource, the content of every 402 (contract 4.1). */

import type { Pricing } from '../../pricing/amount.ts';
import { NAME_CHARACTERS, TOKEN_CHARACTERS } from '../../pricing/buyer-token.ts';
import { BAZAAR, type BazaarForms } from './bazaar.ts';
import { OFFER_RECEIPT } from './offer-receipt.ts';
import { BUYER_TOKEN, PAYMENT_IDENTIFIER } from './payload-schema.ts';
import type { X402Config } from './settings.ts';
import type { Extension, PaymentRequired, PaymentRequirements, ResourceInfo } from './types.ts';

/** Largest PAYMENT-REQUIRED value, bytes: proxies allow a response head 4 KiB by default. */
export const MAX_CHALLENGE_HEADER_BYTES = 4_096;
/** `paymentFlow` of an offer whose payment is settled before the backend is called. */
export const UPFRONT = 'upfront';
/** The same where it is settled after the backend answered: the proof alone is checked before. */
const AUTHORIZATION = 'authorization';
/** Marks where each challenge has its own token. */
export const TOKEN_GAP = '_'.repeat(TOKEN_CHARACTERS);
/**
 * What is added to a document at most, bytes: after a refusal the member `error` with the longest
 * reason (contract 1.3) and a name behind the token, and two spaces before the token.
 */
const ROOM_BYTES = `"error":"${'_'.repeat(64)}",`.length + NAME_CHARACTERS + 2;

/** The declaration that a client may name its payment (contract 4.4). */
const IDENTIFIER_EXTENSION = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
} as const;

/**
 * The extension of an offer that needs a mandate too (ap2 7.4). It is constant and small, because
 * clients echo it in their payload; the checkout that the mandate is for is beside the document.
 */
const MANDATE_DECLARED = {
  ap2: {
    info: { required: true, version: '0.2.0' },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { required: { type: 'boolean' }, version: { type: 'string' } },
      required: ['required', 'version'],
    },
  },
} as const;

/** A resource that has a price. */
export interface PricedResource {
  readonly id: string;
  readonly name: string;
  readonly description: string | undefined;
  readonly mimeType: string;
  readonly pricing: Extract<Pricing, { readonly type: 'fixed' }>;
  /** What a call needs beside its payment; absent: nothing. */
  readonly authorization?: readonly 'ap2'[];
  /** How it is called, for catalogues; absent: it is in none. */
  readonly bazaar?: BazaarForms | undefined;
}

/** The settlement terms of the gateway that an offer repeats. */
export type OfferTerms = Pick<
  X402Config,
  'network' | 'asset' | 'assetName' | 'assetVersion' | 'payTo' | 'maxTimeoutSeconds'
>;

/**
 * The PaymentRequired documents of a resource, with `TOKEN_GAP` for the token: the whole one, then
 * those that are used where it is too large for a header. The description goes first, then
 * `bazaar`, which is one of its forms.
 */
export function paymentRequiredFor(
  resource: PricedResource,
  terms: OfferTerms,
  publicBaseUrl: string,
  bazaar: Extension | undefined,
  signed?: Extension,
): readonly PaymentRequired[] {
  const { description, mimeType } = resource;
  const url = invokeUrl(publicBaseUrl, resource.id);
  const bare = { url, mimeType };
  const infos = description === undefined ? [bare] : [{ url, description, mimeType }, bare];
  const accepts = [requirementsFor(resource, terms)];
  const declared = {
    [PAYMENT_IDENTIFIER]: IDENTIFIER_EXTENSION,
    ...(needsMandate(resource) ? MANDATE_DECLARED : {}),
    ...(signed === undefined ? {} : { [OFFER_RECEIPT]: signed }),
  };
  const sets = bazaar === undefined ? [declared] : [{ ...declared, [BAZAAR]: bazaar }, declared];
  return sets.flatMap((extensions) => infos.map((info) => documentOf(info, accepts, extensions)));
}

/** The first document that fits into the header of a challenge, else the last. */
export function fittingChallenge(documents: readonly PaymentRequired[]): PaymentRequired {
  const fits = documents.find((document) => fitsChallenge(Buffer.byteLength(JSON.stringify(document))));
  const found = fits ?? documents.at(-1);
  if (found === undefined) throw new Error('a challenge needs a document');
  return found;
}

/** Whether a document of this length fits into the header of a challenge, also after a refusal. */
export function fitsChallenge(bytes: number): boolean {
  return 4 * Math.ceil((bytes + ROOM_BYTES) / 3) <= MAX_CHALLENGE_HEADER_BYTES;
}

function documentOf(
  resource: ResourceInfo,
  accepts: readonly PaymentRequirements[],
  declared: PaymentRequired['extensions'],
): PaymentRequired {
  // The token is last, so that its position is known whatever a description contains.
  const extensions = { ...declared, [BUYER_TOKEN]: { info: { token: TOKEN_GAP }, schema: { type: 'object' } } };
  return { x402Version: 2, resource, accepts, extensions };
}

/** The one entry of `accepts` (contract 4.1). An absent `paymentFlow` means the opposite. */
export function requirementsFor(resource: PricedResource, terms: OfferTerms): PaymentRequirements {
  return {
    scheme: 'exact',
    network: terms.network,
    amount: resource.pricing.units.toString(),
    asset: terms.asset,
    payTo: terms.payTo,
    maxTimeoutSeconds: terms.maxTimeoutSeconds,
    extra: {
      name: terms.assetName,
      version: terms.assetVersion,
      assetTransferMethod: 'eip3009',
      paymentFlow: resource.pricing.settle === 'after' ? AUTHORIZATION : UPFRONT,
    },
  };
}

/** The address of a resource, equal on every channel, so that one replay guard holds for all. */
export function invokeUrl(publicBaseUrl: string, resourceId: string): string {
  return `${publicBaseUrl}/api/resources/${resourceId}/invoke`;
}

/** Whether a call for this resource needs a mandate. */
export function needsMandate(resource: Pick<PricedResource, 'id' | 'authorization'>): boolean {
  return resource.authorization?.includes('ap2') === true;
}
