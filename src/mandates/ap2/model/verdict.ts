/** What the verifier reports of a mandate; pipeline, receipts and register go on from there. */

import type { MandateClaim } from '../../register/register.ts';
import type { Reason, RefusalFacts } from './reasons.ts';

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
