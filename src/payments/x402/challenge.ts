import { encodeHeaderText } from './header-codec.ts';
import { needsMandate, type OfferTerms, type PricedResource, paymentRequiredFor } from './offer.ts';
import type { PaymentRequired } from './wire.ts';

/** A 402 in the forms that the channels need. */
export interface Challenge {
  /** The payment-required envelope (SPEC part 2) as JSON. */
  readonly body: string;
  /** The PAYMENT-REQUIRED header: the document below as base64. */
  readonly header: string;
  /** The x402 v2 PaymentRequired document as JSON, for channels that carry it as an object. */
  readonly document: string;
  /** The envelope without its member `error`, for channels that put both documents into one. */
  readonly envelope: string;
  /** Why a proof was refused; undefined when none came. */
  readonly refusal: ChallengeError | undefined;
  /** One sentence for people: what is asked for which resource. */
  readonly message: string;
  /** The document without a description that is not ASCII: clients that echo it through `btoa` could not pay. */
  readonly asciiDocument: string;
}

/** Why the proof that came with this request was refused (CONTRACT 1.3); the additive member `error` of the body. */
export interface ChallengeError {
  readonly code: 'PAYMENT_INVALID' | 'PAYMENT_SETTLEMENT_FAILED';
  readonly reason: string;
  readonly message: string;
  readonly retryable: false;
}

/**
 * The challenge of one resource. `expiresAt` in ISO 8601. `authorization`: JSON text that says which mandate must come too (ap2.md 7.4),
 * the additive member of that name; undefined where none is required.
 */
export interface ChallengeTemplate {
  fresh(requestId: string, expiresAt: string, authorization?: string): Challenge;
  refused(requestId: string, expiresAt: string, error: ChallengeError, authorization?: string): Challenge;
}

/**
 * Builds the challenge of a resource once: all that differs between two requests is the request id, the expiry and the checkout of a
 * mandate, so a 402 costs one concatenation. Rebuilt with the configuration, never patched.
 */
export function challengeFor(resource: PricedResource, terms: OfferTerms, publicBaseUrl: string): ChallengeTemplate {
  const required = paymentRequiredFor(resource, terms, publicBaseUrl);
  const document = JSON.stringify(required);
  const header = encodeHeaderText(document);
  const message = messageOf(resource);
  const frame = envelopeFrame(resource, terms, JSON.stringify(required.accepts), message);
  const asciiDocument = ASCII.test(document) ? document : JSON.stringify(withoutDescription(required));
  return {
    fresh(requestId, expiresAt, authorization) {
      const envelope = frame(requestId, expiresAt, document, authorization);
      return { body: envelope, header, document, envelope, refusal: undefined, message, asciiDocument };
    },
    refused(requestId, expiresAt, refusal, authorization) {
      const refused = withError(document, refusal.reason);
      const envelope = frame(requestId, expiresAt, refused, authorization);
      const body = `${envelope.slice(0, -1)},"error":${JSON.stringify(refusal)}}`;
      const forms = { body, header: encodeHeaderText(refused), document: refused, envelope, refusal, message };
      return { ...forms, asciiDocument: withError(asciiDocument, refusal.reason) };
    },
  };
}

const VERSION_MEMBER = '{"x402Version":2,';
// biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant.
const ASCII = /^[\x00-\x7f]*$/;

/** A PaymentRequired document with its `error` set, right behind the version as the specification shows it. */
export function withError(document: string, error: string): string {
  if (!document.startsWith(VERSION_MEMBER)) throw new Error('PaymentRequired must begin with its version');
  return `${VERSION_MEMBER}"error":${JSON.stringify(error)},${document.slice(VERSION_MEMBER.length)}`;
}

function withoutDescription({ resource, ...rest }: PaymentRequired): PaymentRequired {
  const { description: _, ...bare } = resource;
  // The version must come first, and it does: the order of `rest` is the order it was written in.
  return { ...rest, resource: bare };
}

function messageOf(resource: PricedResource): string {
  const { id, name, pricing } = resource;
  const mandate = needsMandate(resource) ? MANDATE_TOO : '';
  return `Payment of ${pricing.amount} ${pricing.currency} is required for ${name} (${id}).${mandate}`;
}

const MANDATE_TOO = ' It also needs an AP2 mandate for the checkout in authorization.';

type Frame = (requestId: string, expiresAt: string, document: string, authorization: string | undefined) => string;

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
  return (requestId, expiresAt, document, authorization) => {
    const mandate = authorization === undefined ? '' : `,"authorization":${authorization}`;
    return `${head}${JSON.stringify(requestId)}${middle}${JSON.stringify(expiresAt)}${beforeDocument}${document}}${mandate}}`;
  };
}
