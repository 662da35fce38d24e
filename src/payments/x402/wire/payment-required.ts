/** Builds the PaymentRequired document of a resource, the content of every 402 (contract 4.1). */

import type { Pricing } from '../../pricing/amount.ts';
import { NAME_CHARACTERS, TOKEN_CHARACTERS } from '../../pricing/buyer-token.ts';
import { BAZAAR, type BazaarForms, withOpenSchema } from './bazaar.ts';
import { OFFER_RECEIPT } from './offer-receipt.ts';
import { BUYER_TOKEN, PAYMENT_IDENTIFIER } from './payload-schema.ts';
import type { X402Config } from './settings.ts';
import { type Extension, PAYMENT_REQUIRED, type PaymentRequired, type PaymentRequirements } from './types.ts';

/** `paymentFlow` of an offer whose payment is settled before the backend is called. */
export const UPFRONT = 'upfront';
/** The same where it is settled after the backend answered: the proof alone is checked before. */
const AUTHORIZATION = 'authorization';
/** Marks where each challenge has its own token. */
export const TOKEN_GAP = '_'.repeat(TOKEN_CHARACTERS);
/** What is added to a document at most: two spaces before the token, bytes. */
const PADDING_BYTES = 2;
/** After a refusal also `error` with the longest reason (contract 1.3), and a name of an answer. */
const REFUSAL_BYTES = `"error":"${'_'.repeat(64)}",`.length + NAME_CHARACTERS;
/** What a refused settlement leaves of the head for PAYMENT-RESPONSE, bytes. */
export const REFUSED_RESPONSE_BYTES = 360;
/** The field that carries the document, but for its value. */
const FIELD_BYTES = `${PAYMENT_REQUIRED}: \r\n`.length;

/** How many bytes of a head the gateway's other fields leave, each at its longest. */
export interface HeadRoom {
  readonly plain: number;
  /** Of the answer with a page for people. */
  readonly page: number;
}

/** What is left by the heads that proxies take unless they are told otherwise. */
export const USUAL_ROOM: HeadRoom = { plain: 3_500, page: 3_250 };

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

/** A PaymentRequired document, and what was left out of it for its size. */
export interface FormOfTerms {
  readonly required: PaymentRequired;
  readonly leftOut: readonly string[];
}

/** What may be missing of a document. */
interface Dispensable {
  readonly description: string | undefined;
  readonly signed: Extension | undefined;
  readonly bazaar: Extension | undefined;
}

/**
 * The PaymentRequired documents of a resource, with `TOKEN_GAP` for the token: the whole one, then
 * those that are used where it is too large for a head. The schema of `bazaar`, which is one of its
 * forms, is shortened first; then go the description, the signed offer and that form.
 */
export function paymentRequiredFor(
  resource: PricedResource,
  terms: OfferTerms,
  publicBaseUrl: string,
  bazaar: Extension | undefined,
  signed?: Extension,
): readonly FormOfTerms[] {
  const { description, mimeType } = resource;
  const url = invokeUrl(publicBaseUrl, resource.id);
  const accepts = [requirementsFor(resource, terms)];
  const formOf = (parts: Dispensable, leftOut: readonly string[]): FormOfTerms => {
    const extensions = {
      [PAYMENT_IDENTIFIER]: IDENTIFIER_EXTENSION,
      ...(needsMandate(resource) ? MANDATE_DECLARED : {}),
      ...(parts.signed === undefined ? {} : { [OFFER_RECEIPT]: parts.signed }),
      ...(parts.bazaar === undefined ? {} : { [BAZAAR]: parts.bazaar }),
      // Last, so that its position is known whatever a description contains.
      [BUYER_TOKEN]: { info: { token: TOKEN_GAP }, schema: { type: 'object' } },
    };
    const info = parts.description === undefined ? {} : { description: parts.description };
    return { required: { x402Version: 2, resource: { url, ...info, mimeType }, accepts, extensions }, leftOut };
  };
  let parts: Dispensable = { description, signed, bazaar };
  const gone: string[] = [];
  const forms = [formOf(parts, [])];
  if (bazaar !== undefined) {
    parts = { ...parts, bazaar: withOpenSchema(bazaar) };
    gone.push('the schema of its catalogue form');
    forms.push(formOf(parts, [...gone]));
  }
  for (const [part, words] of DROPPED) {
    if (parts[part] === undefined) continue;
    parts = { ...parts, [part]: undefined };
    gone.push(words);
    forms.push(formOf(parts, [...gone]));
  }
  return forms;
}

/** The order in which parts of a document go. */
const DROPPED = [
  ['description', 'its description'],
  ['signed', 'its signed offer'],
  ['bazaar', 'its catalogue form'],
] as const;

/** Whether a document of this length fits into the room for a field. */
export type Fits = (bytes: number) => boolean;

/** `refused`: the document says why a proof was refused, beside PAYMENT-RESPONSE. */
export function fitsInto(room: number, refused: boolean): Fits {
  const added = PADDING_BYTES + (refused ? REFUSAL_BYTES : 0);
  const taken = FIELD_BYTES + (refused ? REFUSED_RESPONSE_BYTES : 0);
  return (bytes) => 4 * Math.ceil((bytes + added) / 3) + taken <= room;
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
