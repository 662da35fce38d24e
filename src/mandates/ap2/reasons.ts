/**
 * The verifier's reports: verdicts, and the closed list of reasons of a refused mandate with the
 * message that agents read.
 */

import type { MandateClaim, UseRefusal } from '../register.ts';

/** The error classes of AP2, as they stand in a receipt. */
type Ap2Error =
  | 'invalid_credential'
  | 'invalid_mandate'
  | 'unresolved_constraint'
  | 'mandates_not_supported'
  | undefined;

interface ReasonRule {
  readonly code:
    | 'AUTHORIZATION_REQUIRED'
    | 'AUTHORIZATION_INVALID'
    | 'AUTHORIZATION_REPLAYED'
    | 'AUTHORIZATION_PROVIDER_UNAVAILABLE';
  readonly ap2Error: Ap2Error;
  readonly advice: string;
}

function invalid(ap2Error: Ap2Error, advice: string): ReasonRule {
  return { code: 'AUTHORIZATION_INVALID', ap2Error, advice };
}

const AGAIN = 'Make one for the fresh checkout in authorization.';
const ANOTHER = 'Ask the user for another one.';
const credential = (advice: string) => invalid('invalid_credential', advice);
const mandate = (advice: string) => invalid('invalid_mandate', advice);
const unresolved = (advice: string) => invalid('unresolved_constraint', advice);
const replayed = (advice: string): ReasonRule => ({
  code: 'AUTHORIZATION_REPLAYED',
  ap2Error: 'invalid_mandate',
  advice,
});

/**
 * Every reason (ap2 8), with the error code that it becomes, its class in a receipt, and for agents
 * what is wrong and what would be right. The sentences quote nothing of the mandate;
 * `authorization` is the challenge that the refusal carries.
 */
export const REASONS = {
  mandate_required: {
    code: 'AUTHORIZATION_REQUIRED',
    ap2Error: undefined,
    advice:
      'This resource needs an AP2 mandate. Make one for the checkout in authorization and send the same call again with it: over HTTP in the ' +
      'header Agent-Authorization, over MCP and A2A as the input member _authorization.',
  },
  envelope_too_large: credential('The envelope of the mandate is longer than maxEnvelopeBytes in authorization.'),
  envelope_encoding: credential(
    'The envelope of the mandate must be the base64url of JSON, once and with nothing around it: only A-Z, a-z, 0-9, - and _, no padding.',
  ),
  envelope_json: credential('The envelope of the mandate does not decode to JSON in which every name is there once.'),
  envelope_schema: credential(
    'The envelope of the mandate must be {"method":"ap2","version":"0.2","payload":"..."}, with payment_mandate as the only other member; ' +
      'payload and payment_mandate are SD-JWTs as text.',
  ),
  mandate_malformed: credential(
    'The mandate cannot be split into its tokens: each is a JWT, its disclosures and a ~ after every one of these; at most four are ' +
      'joined, by one more ~.',
  ),
  unsupported_algorithm: credential(
    'A token of the mandate is not signed with an algorithm in authorization, or not with that of its key.',
  ),
  unexpected_typ: credential(
    'A token of the mandate has the wrong typ for its place: dc+sd-jwt for the first, kb+sd-jwt for the last of several.',
  ),
  untrusted_issuer: credential(
    'This merchant does not trust the issuer of the mandate. It trusts those under issuers in authorization.',
  ),
  unknown_key: credential('This merchant trusts the issuer of the mandate, and knows no key of it with that kid.'),
  invalid_signature: credential(
    'A signature of the mandate is wrong: its token was changed, or not signed with the key that its kid or the cnf before it names.',
  ),
  disclosure_invalid: credential(
    'A disclosure of the mandate was changed, is there twice, or belongs to nothing: each is the base64url of [salt, value] or ' +
      '[salt, name, value].',
  ),
  chain_broken: credential(
    'The tokens of the mandate do not belong together: all but the last have a key in cnf, and each later one has the sd_hash of the one ' +
      'before it.',
  ),
  claims_invalid: credential(
    'A claim of the mandate is missing or not of its form: times are whole seconds, amounts whole minor units, and what is not closed ' +
      'for this call needs an exp.',
  ),
  audience_mismatch: credential(
    'The mandate is for another audience: the aud of its last token must be audience in authorization.',
  ),
  nonce_mismatch: credential(`The nonce of the last token is not that of the checkout in the mandate. ${AGAIN}`),
  expired: credential(`The mandate has expired. ${ANOTHER}`),
  not_yet_valid: credential('The mandate is not valid yet. If it should be, compare the clock of its signer.'),
  stale_presentation: credential(`The last token of the mandate was signed too long ago. ${AGAIN}`),
  unsupported_version: {
    code: 'AUTHORIZATION_INVALID',
    ap2Error: 'mandates_not_supported',
    advice:
      'The envelope of the mandate must say "method":"ap2" and "version":"0.2". Mandates of AP2 0.1 are not accepted. ' +
      AGAIN,
  },
  disclosure_missing: unresolved(
    'The mandate hides something that decides about this purchase. Only entries of allowed and acceptable_items may stay hidden.',
  ),
  constraint_unresolved: unresolved(
    'This merchant cannot judge a constraint of the mandate. It knows the types under constraints in authorization.',
  ),
  wrong_mandate_type: mandate(
    'A mandate has the wrong vct for its place: mandate.checkout.1 ends payload, mandate.payment.1 ends payment_mandate, and the open ' +
      'ones of the same kind come before them.',
  ),
  checkout_hash_mismatch: mandate('checkout_hash is not the SHA-256 (base64url) of the checkout_jwt in the mandate.'),
  checkout_signature_invalid: mandate(`The checkout in the mandate was not signed by this merchant. ${AGAIN}`),
  checkout_invalid: mandate(`The checkout in the mandate is not one for this merchant. ${AGAIN}`),
  checkout_expired: mandate(`The checkout in the mandate has expired. ${AGAIN}`),
  resource_mismatch: mandate(`The checkout in the mandate is for another resource. ${AGAIN}`),
  input_mismatch: mandate(`The checkout in the mandate is for another input. ${AGAIN}`),
  amount_mismatch: mandate(`The amount in the mandate is not the price of this call. ${AGAIN}`),
  currency_mismatch: mandate(`The currency in the mandate is not that of this call. ${AGAIN}`),
  payee_mismatch: mandate(
    'The mandate is for another merchant: its merchant and payee must be those of the checkout in authorization.',
  ),
  payment_method_mismatch: mandate(
    'The mandate is for another way to pay: method, network, asset and destination must be those of this call, and what is free takes ' +
      'no payment mandate.',
  ),
  payer_mismatch: mandate(
    'The payment comes from another address than the payment mandate names as its payment_instrument.',
  ),
  payment_binding_mismatch: mandate(
    'The payment mandate is for another checkout or checkout mandate, or, with bindPaymentNonce, the nonce of the payment is not its ' +
      'keccak256.',
  ),
  payment_mandate_required: mandate('This resource needs a payment mandate too, as payment_mandate beside payload.'),
  preset_mismatch: mandate('The closed mandate says something else than its open mandate has fixed already.'),
  constraint_violated: mandate(`This purchase is beyond a limit of the open mandate. ${ANOTHER}`),
  budget_exceeded: mandate(`The budget of the open mandate has not enough left for this purchase. ${ANOTHER}`),
  recurrence_exceeded: mandate(`The open mandate has been used as often as it may be. ${ANOTHER}`),
  recurrence_too_soon: mandate(
    'The open mandate has been used in this period. It can be used again when the next one begins (UTC).',
  ),
  replayed: replayed(`This mandate or its checkout has already been used, or may have been. ${AGAIN}`),
  open_mandate_spent: replayed(
    `The open mandate was good for one purchase and has been used, or is older than what this merchant remembers. ${ANOTHER}`,
  ),
  provider_unavailable: {
    code: 'AUTHORIZATION_PROVIDER_UNAVAILABLE',
    ap2Error: undefined,
    advice: 'This mandate cannot be checked right now. Send the same call again.',
  },
} satisfies Readonly<Record<string, ReasonRule>> & Readonly<Record<UseRefusal, ReasonRule>>;

export type Reason = keyof typeof REASONS;

/** The reason in an error about a refused mandate; undefined for other errors. */
export function reasonOfRefusal(code: string, reason: string | undefined): Reason | undefined {
  if (reason === undefined || !isReason(reason)) return undefined;
  return REASONS[reason].code === code ? reason : undefined;
}

function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text);
}

/** Which of the two mandates of an envelope. */
export type MandateFamily = 'checkout' | 'payment';

/** The facts of a refusal beside its reason; none is a value that the caller sent. */
interface RefusalFacts {
  readonly mandate?: MandateFamily;
  /** The type of the constraint, one that this verifier knows. */
  readonly constraint?: string;
}

/**
 * Thrown by the checks of a mandate, which lie deep in its structure; only `verify.ts` catches it.
 * Its text is the reason and holds nothing that the caller sent.
 */
export class Refused extends Error {
  readonly reason: Reason;
  readonly facts: RefusalFacts;

  /** `cause` is for the log only. */
  constructor(reason: Reason, facts: RefusalFacts = {}, cause?: unknown) {
    super(reason, cause === undefined ? {} : { cause });
    this.name = 'Refused';
    this.reason = reason;
    this.facts = facts;
  }
}

/** The names of a presentation in receipts and answers. */
export interface MandateReference {
  /** base64url of SHA-256 over the leaf JWT alone: what clients of the AP2 SDK look up. */
  readonly reference: string;
  /** The same over the leaf with its disclosures, as the text of the specification says. */
  readonly referenceSdHash: string;
}

/** A mandate that is right for this purchase. The register decides whether it may still be used. */
export interface AcceptedMandate extends MandateReference {
  readonly kind: 'accepted';
  readonly mode: 'direct' | 'autonomous';
  /** Who signed the root of the checkout mandate. */
  readonly issuer: string;
  /** Identity of the closed checkout mandate: base64url of SHA-256 over its signing input. */
  readonly mandateId: string;
  readonly checkoutIssuer: string;
  /** `jti`. */
  readonly checkoutId: string;
  readonly claim: MandateClaim;
}

/** A mandate that is not for this purchase, or not right at all. */
export interface RefusedMandate extends RefusalFacts {
  readonly kind: 'refused';
  readonly reason: Reason;
  /** Undefined while nothing could be read that a receipt may refer to. */
  readonly reference: MandateReference | undefined;
  /** Of the root, once its signature was good. */
  readonly issuer: string | undefined;
  /** For the log only. */
  readonly cause?: unknown;
}

export type MandateVerdict = AcceptedMandate | RefusedMandate;
