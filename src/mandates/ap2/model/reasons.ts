/** What the verifier reports: verdicts, and the closed list of reasons of a refused mandate. */

import type { MandateClaim, UseRefusal } from '../../register/register.ts';

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
}

const REQUIRED: ReasonRule = { code: 'AUTHORIZATION_REQUIRED', ap2Error: undefined };
const CREDENTIAL: ReasonRule = { code: 'AUTHORIZATION_INVALID', ap2Error: 'invalid_credential' };
const UNSUPPORTED: ReasonRule = { code: 'AUTHORIZATION_INVALID', ap2Error: 'mandates_not_supported' };
const UNRESOLVED: ReasonRule = { code: 'AUTHORIZATION_INVALID', ap2Error: 'unresolved_constraint' };
const MANDATE: ReasonRule = { code: 'AUTHORIZATION_INVALID', ap2Error: 'invalid_mandate' };
const REPLAYED: ReasonRule = { code: 'AUTHORIZATION_REPLAYED', ap2Error: 'invalid_mandate' };
const UNAVAILABLE: ReasonRule = { code: 'AUTHORIZATION_PROVIDER_UNAVAILABLE', ap2Error: undefined };

/** Every reason (ap2 8), with the error code that it becomes and its class in a receipt. */
export const REASONS = {
  mandate_required: REQUIRED,
  envelope_too_large: CREDENTIAL,
  envelope_encoding: CREDENTIAL,
  envelope_json: CREDENTIAL,
  envelope_schema: CREDENTIAL,
  mandate_malformed: CREDENTIAL,
  unsupported_algorithm: CREDENTIAL,
  unexpected_typ: CREDENTIAL,
  untrusted_issuer: CREDENTIAL,
  unknown_key: CREDENTIAL,
  invalid_signature: CREDENTIAL,
  disclosure_invalid: CREDENTIAL,
  chain_broken: CREDENTIAL,
  claims_invalid: CREDENTIAL,
  audience_mismatch: CREDENTIAL,
  nonce_mismatch: CREDENTIAL,
  expired: CREDENTIAL,
  not_yet_valid: CREDENTIAL,
  stale_presentation: CREDENTIAL,
  revoked: CREDENTIAL,
  unsupported_version: UNSUPPORTED,
  disclosure_missing: UNRESOLVED,
  constraint_unresolved: UNRESOLVED,
  wrong_mandate_type: MANDATE,
  checkout_hash_mismatch: MANDATE,
  checkout_signature_invalid: MANDATE,
  checkout_invalid: MANDATE,
  checkout_expired: MANDATE,
  resource_mismatch: MANDATE,
  input_mismatch: MANDATE,
  amount_mismatch: MANDATE,
  currency_mismatch: MANDATE,
  payee_mismatch: MANDATE,
  payment_method_mismatch: MANDATE,
  payer_mismatch: MANDATE,
  payment_binding_mismatch: MANDATE,
  payment_mandate_required: MANDATE,
  preset_mismatch: MANDATE,
  constraint_violated: MANDATE,
  budget_exceeded: MANDATE,
  recurrence_exceeded: MANDATE,
  recurrence_too_soon: MANDATE,
  replayed: REPLAYED,
  open_mandate_spent: REPLAYED,
  provider_unavailable: UNAVAILABLE,
} as const satisfies Readonly<Record<string, ReasonRule>> & Readonly<Record<UseRefusal, ReasonRule>>;

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

/** What a refusal states beside its reason. None of it is a value that the caller sent. */
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

/** What receipts and answers call a presentation. */
export interface MandateReference {
  /** base64url of SHA-256 over the leaf JWT alone: what clients of the AP2 SDK look up. */
  readonly reference: string;
  /** The same over the leaf with its disclosures: the text of the specification. */
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
