/** Builds the 402 of each resource once at start, so that a challenge costs one concatenation. */

import { BAZAAR } from './bazaar.ts';
import { encodeHeaderText } from './header-codec.ts';
import { documentsAt } from './in-place.ts';
import { BUYER_TOKEN } from './payload-schema.ts';
import {
  type Fits,
  type FormOfTerms,
  fitsInto,
  type HeadRoom,
  needsMandate,
  type OfferTerms,
  type PricedResource,
  paymentRequiredFor,
  TOKEN_GAP,
  USUAL_ROOM,
} from './payment-required.ts';
import type { Extension, PaymentRequired } from './types.ts';

const VERSION_MEMBER = '{"x402Version":2,';
/** `error` where no proof was refused. */
const PLAIN_REASON = 'Payment required';
const MANDATE_TOO = ' It also needs an AP2 mandate for the checkout in authorization.';

/** A 402 in the forms that the channels need. */
export interface Challenge {
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

/** What is different in each challenge of a resource. */
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
  fresh(facts: ChallengeFacts): Challenge;
  refused(facts: ChallengeFacts, error: ChallengeError): Challenge;
}

/**
 * Two challenges of a resource differ in request id, expiry, buyer's token, the checkout of a
 * mandate and, in place, the URL; everything else is serialised here. Rebuilt with the
 * configuration, never patched. `signed`: the signed offer. `room`: for the header.
 */
export function challengeFor(
  resource: PricedResource,
  terms: OfferTerms,
  publicBaseUrl: string,
  signed?: Extension,
  room: HeadRoom = USUAL_ROOM,
): ChallengeTemplate {
  const { invoke, inPlace: there, tool } = resource.bazaar ?? {};
  const documents = (bazaar: Extension | undefined) =>
    paymentRequiredFor(resource, terms, publicBaseUrl, bazaar, signed);
  const forms = documents(invoke);
  const first = fitting(forms, fitsInto(room.plain, false));
  const whenRefused = fitsInto(room.plain, true);
  let afterRefusal: ReturnType<typeof fitting> | undefined;
  const terseWith = terseTerms(whole(forms), tool?.extension);
  const at = documentsAt(documents(there));
  const onPage = fitsInto(room.page, false);
  const inPlace = ({ url, token }: ChallengeFacts, fits: Fits) =>
    url === undefined ? undefined : at(url, token, fits);
  const message = messageOf(resource);
  const frame = envelopeFrame(resource, terms, JSON.stringify(whole(forms).accepts), message);
  return {
    fresh(facts) {
      const { token, authorization } = facts;
      const moved = inPlace(facts, onPage);
      const document = moved?.text ?? first.around.text(token);
      const header = moved === undefined ? first.header(token) : encodeHeaderText(moved.text);
      const terse = terseWith(token, PLAIN_REASON);
      const { leftOut } = moved ?? first;
      return {
        ...{ body: frame(facts, document), header, leftOut, document },
        ...{ terse, authorization, refusal: undefined, message },
      };
    },
    refused(facts, refusal) {
      const { token, authorization } = facts;
      afterRefusal ??= fitting(forms, whenRefused);
      const moved = inPlace(facts, whenRefused);
      const document = withError(moved?.text ?? afterRefusal.around.text(token), refusal.reason);
      const body = `${frame(facts, document).slice(0, -1)},"error":${JSON.stringify(refusal)}}`;
      // The error shifts the token in the base64; refusals are rare enough to be encoded whole.
      const header = moved !== undefined || afterRefusal.fits ? encodeHeaderText(document) : '';
      const { leftOut } = moved ?? afterRefusal;
      const terse = terseWith(token, refusal.reason);
      return { body, header, leftOut, document, terse, authorization, refusal, message };
    },
  };
}

function whole([first]: readonly FormOfTerms[]): PaymentRequired {
  if (first === undefined) throw new Error('a challenge needs a document');
  return first.required;
}

/** Parts that a 402 lacks where not even the shortest document fits. */
const HEADER_GONE = 'the header PAYMENT-REQUIRED (the body has the offer)';

/** The first document that fits, else the last, which then is no header. */
function fitting(forms: readonly FormOfTerms[], fits: Fits) {
  const found = forms.find(({ required }) => fits(Buffer.byteLength(JSON.stringify(required))));
  const { required, leftOut } = found ?? forms.at(-1) ?? { required: whole(forms), leftOut: [] };
  const around = splitAtToken(JSON.stringify(required));
  return {
    around,
    fits: found !== undefined,
    header: found === undefined ? () => '' : around.header,
    leftOut: found === undefined ? [...leftOut, HEADER_GONE] : leftOut,
  };
}

/** A document with a gap for its token. */
interface AroundToken {
  text(token: string): string;
  header(token: string): string;
}

/**
 * Splits a document at its token. Up to two spaces go before the token, which JSON permits: its
 * first byte then lies at a multiple of three, and the base64 of the whole is that of its three
 * parts in a row.
 */
function splitAtToken(document: string): AroundToken {
  const at = document.lastIndexOf(TOKEN_GAP);
  if (at < 0) throw new Error('PaymentRequired has no gap for a token');
  const before = document.slice(0, at - 1);
  const padding = ' '.repeat((3 - ((Buffer.byteLength(before) + 1) % 3)) % 3);
  const head = `${before}${padding}"`;
  const tail = document.slice(at + TOKEN_GAP.length);
  const head64 = encodeHeaderText(head);
  const tail64 = encodeHeaderText(tail);
  return {
    text: (token) => head + token + tail,
    header: (token) => head64 + encodeHeaderText(token) + tail64,
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

function messageOf(resource: PricedResource): string {
  const { id, name, pricing } = resource;
  const mandate = needsMandate(resource) ? MANDATE_TOO : '';
  return `Payment of ${pricing.amount} ${pricing.currency} is required for ${name} (${id}).${mandate}`;
}

type Frame = (facts: ChallengeFacts, document: string) => string;

/** The envelope with its constant parts serialised. */
function envelopeFrame(resource: PricedResource, terms: OfferTerms, accepts: string, message: string): Frame {
  const { amount, currency } = resource.pricing;
  const payment = {
    provider: 'x402',
    version: '2',
    amount,
    currency,
    destination: terms.payTo,
    network: terms.network,
    asset: terms.asset,
  };
  const head = '{"status":"payment-required","code":"PAYMENT_REQUIRED","requestId":';
  const middle = `,"resourceId":${JSON.stringify(resource.id)},"message":${JSON.stringify(message)},"payment":${JSON.stringify(payment).slice(0, -1)},"expiresAt":`;
  const beforeDocument = `,"accepts":${accepts},"envelope":`;
  return ({ requestId, expiresAt, authorization }, document) => {
    const mandate = authorization === undefined ? '' : `,"authorization":${authorization}`;
    return `${head}${JSON.stringify(requestId)}${middle}${JSON.stringify(expiresAt)}${beforeDocument}${document}}${mandate}}`;
  };
}
