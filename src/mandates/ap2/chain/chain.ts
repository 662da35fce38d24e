import type { JsonObject } from '../../../json/types.ts';
import type { MandateReference } from '../model/verdict.ts';
import type { IssuerRole } from '../trust/trust.ts';

/**
 * One segment of a presentation whose signature and disclosures are right (ap2 7.6, steps 4 to 7).
 */
export interface Segment {
  /**
   * base64url of SHA-256 over `header.payload`: its identity, whatever the spelling of its
   * signature.
   */
  readonly id: string;
  /** base64url of SHA-256 over JWT and disclosures: what the next hop binds to. */
  readonly sdHash: string;
  /** The claims of the token with its disclosures put in. */
  readonly claims: JsonObject;
  /** The one revealed mandate of `delegate_payload`; undefined for a user credential. */
  readonly mandate: JsonObject | undefined;
}

/**
 * A presentation that is what it claims to be. Whether it is for this purchase was not looked at.
 */
export interface VerifiedChain {
  readonly issuer: string;
  readonly role: IssuerRole;
  readonly mode: 'direct' | 'autonomous';
  /** Open mandates, root first; empty in direct mode. */
  readonly open: readonly Segment[];
  readonly closed: Segment;
  /** `nonce` of the terminal hop; undefined where no hop was needed. */
  readonly nonce: string | undefined;
  /**
   * The earliest end that anything in it has, before the skew, unix seconds: `exp`s, and the age of
   * the terminal hop.
   */
  readonly ends: number;
  readonly reference: MandateReference;
}
