/** The verified chain and its segments: `verify-chain.ts` returns it, the later checks read it. */

import type { JsonObject } from '../../../json/types.ts';
import type { MandateReference } from '../model/verdict.ts';
import type { IssuerRole } from '../trust/trust.ts';

/** A segment of a presentation after steps 4 to 7 of ap2 7.6. */
export interface Segment {
  /** Its identity, whatever its signature: base64url of SHA-256 over `header.payload`. */
  readonly id: string;
  /** base64url of SHA-256 over JWT and disclosures: what the next hop binds to. */
  readonly sdHash: string;
  /** The claims of the token with its disclosures put in. */
  readonly claims: JsonObject;
  /** The one revealed mandate of `delegate_payload`; undefined for a user credential. */
  readonly mandate: JsonObject | undefined;
}

/** A presentation that is right by itself. Whether it is for this purchase is checked later. */
export interface VerifiedChain {
  readonly issuer: string;
  readonly role: IssuerRole;
  readonly mode: 'direct' | 'autonomous';
  /** Open mandates, root first; empty in direct mode. */
  readonly open: readonly Segment[];
  readonly closed: Segment;
  /** `nonce` of the closing hop; undefined in a chain without hops. */
  readonly nonce: string | undefined;
  /** The earliest `exp`, or when the closing hop is too old; unix seconds, without the skew. */
  readonly ends: number;
  readonly reference: MandateReference;
}
