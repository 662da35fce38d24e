/**
 * The content of every 402 (contract 4.1): the PaymentRequired document of a resource and the
 * envelope around it, serialised once, so that a challenge costs one concatenation.
 */

import { type Pricing, priceText } from '../../pricing/amount.ts';
import { NAME_CHARACTERS, TOKEN_CHARACTERS } from '../../pricing/buyer-token.ts';
import { BAZAAR, BUYER_TOKEN, encodeHeaderText, PAYMENT_IDENTIFIER } from './proof.ts';
import type { X402Config } from './settings.ts';
import {
  type BazaarForms,
  type Extension,
  type Labels,
  OFFER_RECEIPT,
  PAYMENT_REQUIRED,
  type PaymentRequired,
  type PaymentRequirements,
  type ResourceInfo,
} from './types.ts';

const VERSION_MEMBER = '{"x402Version":2,';
const OPENING = `${VERSION_MEMBER}"resource":{"url":`;
/** `error` where no proof was refused. */
const PLAIN_REASON = 'Payment required';
const MANDATE_TOO = ' It also needs an AP2 mandate for the checkout in authorization.';

/** A 402 in the forms that the channels need. */
export interface Challenge {
  /** The entries of `accepts`. */
  readonly shown: AllAccepts;
  /** The payment-required envelope (specification 2) as JSON. */
  readonly body: string;
  /**
   * The PAYMENT-REQUIRED header: the document below as base64. Empty: it does not fit into a head,
   * and the body has it.
   */
  readonly header: string;
  /** Parts that the document lacks so that it fits. */
  readonly leftOut: readonly string[];
  /** The x402 v2 PaymentRequired document as JSON, for channels that carry it as an object. */
  readonly document: string;
  /** The same terms in few bytes, for channels whose answers a model reads. */
  readonly terse: TerseTerms;
  /** The mandate that must come too, as JSON text (ap2 7.4); undefined where none is required. */
  readonly authorization: string | undefined;
  /** Undefined when no proof came. */
  readonly refusal: ChallengeError | undefined;
  /** One sentence for people: which payment is required for which resource. */
  readonly message: string;
}

/**
 * PaymentRequired documents as JSON, with the invoke URL and without description, media type and
 * schemas of extensions.
 */
interface TerseTerms {
  readonly document: string;
  /** With no extension but the token of the buyer. */
  readonly tokenOnly: string;
}

/** Why the proof of this request was refused (contract 1.3): the member `error` of the body. */
interface ChallengeError {
  readonly code: 'PAYMENT_INVALID' | 'PAYMENT_SETTLEMENT_FAILED';
  readonly reason: string;
  readonly message: string;
  readonly retryable: false;
}

/** The parts that differ in each challenge of a resource. */
interface ChallengeFacts {
  readonly requestId: string;
  /** ISO 8601. */
  readonly expiresAt: string;
  /** The buyer's secret (contract 4.5); of `TOKEN_CHARACTERS`, unless a refusal names an answer. */
  readonly token: string;
  /** The mandate that must come too, as JSON text (ap2 7.4); undefined where none is required. */
  readonly authorization?: string | undefined;
  /** The address of a sale in place; undefined: the invoke URL. */
  readonly url?: string | undefined;
}

/** Makes the challenges of one resource. */
export interface ChallengeTemplate {
  /** The entries of `accepts`. */
  readonly shown: AllAccepts;
  /** The shortest time of an entry. */
  readonly lastsSeconds: number;
  fresh(facts: ChallengeFacts): Challenge;
  refused(facts: ChallengeFacts, error: ChallengeError): Challenge;
}

/** One entry of `accepts`, with its price in display units. */
export interface Accepts {
  readonly requirements: PaymentRequirements;
  readonly amount: string;
  readonly currency: string;
}

/** All entries of `accepts`, the preferred one first. */
export type AllAccepts = readonly [Accepts, ...Accepts[]];

/**
 * Serialises all that the challenges of a resource share. They differ in request id, expiry,
 * buyer's token, the checkout of a mandate, the refusal and, in place, the URL. A new configuration
 * makes new templates. `signed`: the signed offers. `room`: for the header.
 */
export function challengeFor(
  resource: PricedResource,
  shown: AllAccepts,
  publicBaseUrl: string,
  signed?: Extension,
  room: HeadRoom = USUAL_ROOM,
): ChallengeTemplate {
  const { invoke, inPlace, tool } = resource.bazaar ?? {};
  const documents = (bazaar: Extension | undefined) =>
    paymentRequiredFor(resource, shown, publicBaseUrl, bazaar, signed);
  const shortened = documents(invoke);
  const there = documents(inPlace).map(splitDocument);
  /** Undefined: the invoke URL names the resource. */
  const formAt = (url: string | undefined, fits: Fits): SplitDocument | undefined =>
    url === undefined ? undefined : there.find(({ bytes }) => fits(bytes + url.length));
  const first = fitting(shortened, fitsInto(room.plain, false));
  const onPage = fitsInto(room.page, false);
  const whenRefused = fitsInto(room.plain, true);
  let afterRefusal: Fitting | undefined;
  const terseWith = terseTerms(whole(shortened), tool?.extension);
  const message = messageOf(resource, shown);
  const frame = envelopeFrame(resource.id, shown, message);
  return {
    shown,
    lastsSeconds: Math.min(...shown.map(({ requirements }) => requirements.maxTimeoutSeconds)),
    fresh(facts) {
      const { token, authorization, url } = facts;
      const moved = formAt(url, onPage);
      const document = moved === undefined ? first.form.text(token) : moved.text(token, url);
      const header = moved !== undefined ? encodeHeaderText(document) : first.fits ? first.form.header(token) : '';
      const { leftOut } = moved ?? first;
      const terse = terseWith(token, PLAIN_REASON);
      return {
        ...{ shown, body: frame(facts, document), header, leftOut, document },
        ...{ terse, authorization, refusal: undefined, message },
      };
    },
    refused(facts, refusal) {
      const { token, authorization, url } = facts;
      afterRefusal ??= fitting(shortened, whenRefused);
      const moved = formAt(url, whenRefused);
      const plain = moved === undefined ? afterRefusal.form.text(token) : moved.text(token, url);
      const document = withError(plain, refusal.reason);
      const body = `${frame(facts, document).slice(0, -1)},"error":${JSON.stringify(refusal)}}`;
      // The error shifts the token in the base64; refusals are rare enough to be encoded whole.
      const header = moved !== undefined || afterRefusal.fits ? encodeHeaderText(document) : '';
      const { leftOut } = moved ?? afterRefusal;
      const terse = terseWith(token, refusal.reason);
      return { shown, body, header, leftOut, document, terse, authorization, refusal, message };
    },
  };
}

function whole([first]: readonly FormOfTerms[]): PaymentRequired {
  if (first === undefined) throw new Error('a challenge needs a document');
  return first.required;
}

/** Parts that a 402 lacks where not even the shortest document fits. */
const HEADER_GONE = 'the header PAYMENT-REQUIRED (the body has the offer)';

/** The document with the invoke URL; only one that `fits` becomes a header. */
interface Fitting {
  readonly form: SplitDocument;
  readonly fits: boolean;
  readonly leftOut: readonly string[];
}

/** The first document that fits, else the last. */
function fitting(forms: readonly FormOfTerms[], fits: Fits): Fitting {
  const found = forms.find(({ required }) => fits(Buffer.byteLength(JSON.stringify(required))));
  const last = found ?? forms.at(-1);
  if (last === undefined) throw new Error('a challenge needs a document');
  const form = splitDocument(last);
  return {
    form,
    fits: found !== undefined,
    leftOut: found === undefined ? [...form.leftOut, HEADER_GONE] : form.leftOut,
  };
}

/** A document with gaps for its URL and its token. */
interface SplitDocument {
  /** Length of the document without its URL. */
  readonly bytes: number;
  readonly leftOut: readonly string[];
  /** `url` replaces the one of the document. */
  text(token: string, url?: string): string;
  header(token: string): string;
}

/**
 * Splits a document at its URL and its token. Up to two spaces go before the token, which JSON
 * permits: its first byte then lies at a multiple of three, and the base64 of the whole is that of
 * its three parts in a row.
 */
function splitDocument({ required, leftOut }: FormOfTerms): SplitDocument {
  const text = JSON.stringify(required);
  const url = JSON.stringify(required.resource.url);
  const at = text.lastIndexOf(TOKEN_GAP);
  if (!text.startsWith(OPENING + url) || at < 0)
    throw new Error('PaymentRequired must begin with its URL and have a gap for a token');
  const before = text.slice(0, at - 1);
  const padding = ' '.repeat((3 - ((Buffer.byteLength(before) + 1) % 3)) % 3);
  const middle = `${before.slice(OPENING.length + url.length)}${padding}"`;
  const head = OPENING + url + middle;
  const tail = text.slice(at + TOKEN_GAP.length);
  let encoded: readonly [head: string, tail: string] | undefined;
  return {
    bytes: Buffer.byteLength(text) - Buffer.byteLength(required.resource.url),
    leftOut,
    text: (token, other) => (other === undefined ? head : OPENING + JSON.stringify(other) + middle) + token + tail,
    header(token) {
      encoded ??= [encodeHeaderText(head), encodeHeaderText(tail)];
      return encoded[0] + encodeHeaderText(token) + encoded[1];
    },
  };
}

/**
 * The terms in few bytes. Every member but the token is what a client needs to sign, or echoes.
 * Some clients demand the `error` that the specification calls optional.
 */
function terseTerms(
  { resource, accepts, extensions }: PaymentRequired,
  tool: Extension | undefined,
): (token: string, error: string) => TerseTerms {
  const { [BUYER_TOKEN]: _token, [BAZAAR]: _invoke, ...declared } = extensions;
  const members = `"resource":${JSON.stringify({ url: resource.url })},"accepts":${JSON.stringify(accepts)},"extensions":{`;
  const terse = Object.entries(declared).map(([name, { info }]) => [name, { info, schema: {} }] as const);
  const shown = Object.fromEntries(tool === undefined ? terse : [...terse, [BAZAAR, tool]]);
  const both = `${members}${JSON.stringify(shown).slice(1, -1)},`;
  return (token, error) => {
    const opening = `${VERSION_MEMBER}"error":${JSON.stringify(error)},`;
    const closing = `"${BUYER_TOKEN}":{"info":{"token":"${token}"},"schema":{}}}}`;
    return { document: opening + both + closing, tokenOnly: opening + members + closing };
  };
}

/** Sets `error` in a PaymentRequired document, behind the version as the specification has it. */
function withError(document: string, error: string): string {
  if (!document.startsWith(VERSION_MEMBER)) throw new Error('PaymentRequired must begin with its version');
  return `${VERSION_MEMBER}"error":${JSON.stringify(error)},${document.slice(VERSION_MEMBER.length)}`;
}

function messageOf(resource: PricedResource, shown: AllAccepts): string {
  const { id, name, isLowest = false } = resource;
  const mandate = needsMandate(resource) ? MANDATE_TOO : '';
  const price = `${isLowest ? 'at least ' : ''}${priceText(shown)}`;
  const follows = isLowest ? ' This is the lowest price: each input has its own.' : '';
  return `Payment of ${price} is required for ${name} (${id}).${follows}${mandate}`;
}

type Frame = (facts: ChallengeFacts, document: string) => string;

/** The envelope with its constant parts serialised; `payment` is the preferred offer. */
function envelopeFrame(resourceId: string, shown: AllAccepts, message: string): Frame {
  const [{ requirements, amount, currency }] = shown;
  const { payTo: destination, network, asset } = requirements;
  const payment = { provider: 'x402', version: '2', amount, currency, destination, network, asset };
  const accepts = JSON.stringify(shown.map((one) => one.requirements));
  const head = '{"status":"payment-required","code":"PAYMENT_REQUIRED","requestId":';
  const middle = `,"resourceId":${JSON.stringify(resourceId)},"message":${JSON.stringify(message)},"payment":${JSON.stringify(payment).slice(0, -1)},"expiresAt":`;
  const beforeDocument = `,"accepts":${accepts},"envelope":`;
  return ({ requestId, expiresAt, authorization }, document) => {
    const mandate = authorization === undefined ? '' : `,"authorization":${authorization}`;
    return `${head}${JSON.stringify(requestId)}${middle}${JSON.stringify(expiresAt)}${beforeDocument}${document}}${mandate}}`;
  };
}

/** `paymentFlow` of an offer whose payment is settled before the backend is called. */
export const UPFRONT = 'upfront';
/** `paymentFlow` of an offer that is settled after the answer; its proof is checked before. */
const AUTHORIZATION = 'authorization';
/** Marks where each challenge has its own token. */
export const TOKEN_GAP = '_'.repeat(TOKEN_CHARACTERS);
/** Most bytes that are added to a document: two spaces before the token. */
const PADDING_BYTES = 2;
/** Most bytes of a refusal: `error` with the longest reason (contract 1.3), an answer's name. */
const REFUSAL_BYTES = `"error":"${'_'.repeat(64)}",`.length + NAME_CHARACTERS;
/** Bytes that the head of a refused settlement keeps free for PAYMENT-RESPONSE. */
export const REFUSED_RESPONSE_BYTES = 360;
/** Length of the field that carries the document, without its value. */
const FIELD_BYTES = `${PAYMENT_REQUIRED}: \r\n`.length;

/** How many bytes of a head the gateway's other fields leave, each at its longest. */
export interface HeadRoom {
  readonly plain: number;
  /** Bytes left by an answer with a page for people. */
  readonly page: number;
}

/** The room in heads of the size that proxies take by default. */
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

/** The pricing of a resource that has a price. */
export type FixedPricing = Extract<Pricing, { readonly type: 'fixed' }>;

/** A resource that has a price. */
export interface PricedResource {
  readonly id: string;
  readonly name: string;
  readonly description: string | undefined;
  readonly mimeType: string;
  /** Absent: none. */
  readonly labels?: Labels;
  /** The price is the lowest of several, because the call has no input yet. */
  readonly isLowest?: boolean;
  /** The authorization that a call needs beside its payment; absent: none. */
  readonly authorization?: readonly 'ap2'[];
  /** How it is called, for catalogues; absent: it is in none. */
  readonly bazaar?: BazaarForms | undefined;
}

/** The settlement terms of the gateway that an offer repeats. */
export type OfferTerms = Pick<
  X402Config,
  'network' | 'asset' | 'assetName' | 'assetVersion' | 'payTo' | 'maxTimeoutSeconds'
>;

/** A PaymentRequired document, and the parts that it lacks for its size. */
interface FormOfTerms {
  readonly required: PaymentRequired;
  readonly leftOut: readonly string[];
}

/** The parts that a document may lack. */
interface Dispensable extends Omit<ResourceInfo, 'url' | 'mimeType'> {
  readonly signed?: Extension;
  readonly bazaar?: Extension;
}

/**
 * The PaymentRequired documents of a resource, with `TOKEN_GAP` for the token: the whole one, then
 * smaller ones for a head that has no room for it. `bazaar`: one form of the catalogue extension.
 */
function paymentRequiredFor(
  resource: PricedResource,
  shown: AllAccepts,
  publicBaseUrl: string,
  bazaar: Extension | undefined,
  signed?: Extension,
): readonly FormOfTerms[] {
  const { description, mimeType, labels } = resource;
  const url = invokeUrl(publicBaseUrl, resource.id);
  const accepts = shown.map(({ requirements }) => requirements);
  const formOf = ({ signed: offer, bazaar: form, ...words }: Dispensable, leftOut: readonly string[]): FormOfTerms => {
    const extensions = {
      [PAYMENT_IDENTIFIER]: IDENTIFIER_EXTENSION,
      ...(needsMandate(resource) ? MANDATE_DECLARED : {}),
      ...(offer === undefined ? {} : { [OFFER_RECEIPT]: offer }),
      ...(form === undefined ? {} : { [BAZAAR]: form }),
      // Last, so that its position is known whatever a description contains.
      [BUYER_TOKEN]: { info: { token: TOKEN_GAP }, schema: { type: 'object' } },
    };
    return { required: { x402Version: 2, resource: { url, mimeType, ...words }, accepts, extensions }, leftOut };
  };
  let parts: Dispensable = {
    ...(description === undefined ? {} : { description }),
    ...labels,
    ...(signed === undefined ? {} : { signed }),
    ...(bazaar === undefined ? {} : { bazaar }),
  };
  const gone: string[] = [];
  const forms = [formOf(parts, [])];
  for (const [part, words] of DROPPED) {
    if (parts[part] === undefined) continue;
    const { [part]: _gone, ...rest }: Dispensable = parts;
    parts = bazaar !== undefined && words === SCHEMA ? { ...rest, bazaar: withOpenSchema(bazaar) } : rest;
    gone.push(words);
    forms.push(formOf(parts, [...gone]));
  }
  return forms;
}

/** A form in fewer bytes, with a schema that any `info` satisfies: catalogues read only `info`. */
export function withOpenSchema(form: Extension): Extension {
  return { ...form, schema: { type: 'object' } };
}

const SCHEMA = 'the schema of its catalogue form';
/**
 * The order in which parts of a document go; of `SCHEMA` an open one stays. Tags and name take
 * fewer bytes than the parts before them.
 */
const DROPPED = [
  ['iconUrl', 'its icon'],
  ['bazaar', SCHEMA],
  ['description', 'its description'],
  ['tags', 'its tags'],
  ['serviceName', 'the name of the merchant'],
  ['signed', 'its signed offers'],
  ['bazaar', 'its catalogue form'],
] as const;

/** Whether a document of this length fits into the room for a field. */
type Fits = (bytes: number) => boolean;

/** `refused`: the document says why a proof was refused, beside PAYMENT-RESPONSE. */
function fitsInto(room: number, refused: boolean): Fits {
  const added = PADDING_BYTES + (refused ? REFUSAL_BYTES : 0);
  const taken = FIELD_BYTES + (refused ? REFUSED_RESPONSE_BYTES : 0);
  return (bytes) => 4 * Math.ceil((bytes + added) / 3) + taken <= room;
}

/** An entry of `accepts` (contract 4.1). Without `paymentFlow` it means `authorization`. */
export function requirementsFor(
  units: bigint,
  settle: FixedPricing['settle'] | undefined,
  terms: OfferTerms,
): PaymentRequirements {
  return {
    scheme: 'exact',
    network: terms.network,
    amount: units.toString(),
    asset: terms.asset,
    payTo: terms.payTo,
    maxTimeoutSeconds: terms.maxTimeoutSeconds,
    extra: {
      name: terms.assetName,
      version: terms.assetVersion,
      assetTransferMethod: 'eip3009',
      paymentFlow: settle === 'after' ? AUTHORIZATION : UPFRONT,
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

/** Longest address in a document, bytes; for a longer one it has the invoke URL. */
const MAX_URL_BYTES = 1_024;
/** An escape, or a character that a path has only as an escape (RFC 3986, 3.3). */
const ESCAPED = /%[0-9a-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/gi;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * The URL that a challenge at the backend's own address names: two spellings of one path have the
 * same. Made of configuration and path alone, because the Host header is the caller's. Undefined:
 * it is too long for a challenge.
 */
export function inPlaceUrl(publicBaseUrl: string, path: string): string | undefined {
  const url = publicBaseUrl + normalPath(path);
  return url.length > MAX_URL_BYTES ? undefined : url;
}

/** Upper-case escapes, and none for unreserved characters (RFC 3986, 6.2.2). */
function normalPath(path: string): string {
  return path.replace(ESCAPED, (found) => {
    if (!found.startsWith('%')) return encodeURIComponent(found);
    const character = String.fromCharCode(Number.parseInt(found.slice(1), 16));
    return UNRESERVED.test(character) ? character : found.toUpperCase();
  });
}

/**
 * Matches the URLs that challenges of one resource have in place. A parameter may hold anything
 * within its segment: the input binds the purchase, never a URL.
 * @param address a URL with `{param}`s
 */
export function inPlaceUrls(address: string): RegExp {
  const literals = address.split(/\{[^{}]*\}/).map((literal) => RegExp.escape(normalPath(literal)));
  return new RegExp(`^${literals.join('[^/?#]*')}$`);
}
