/** The port to the trusted issuers: `chain/prove.ts` asks it for the key of a root (ap2 7.5). */

import type { KeyObject } from 'node:crypto';

/** The one algorithm that a key is for (RFC 7518, RFC 8037). */
export type Algorithm = 'ES256' | 'ES384' | 'EdDSA' | 'ES256K';

/** A public key that is ready to verify with. */
export interface VerificationKey {
  readonly alg: Algorithm;
  readonly key: KeyObject;
}

/** What the head of a root token names its key by. It only chooses among the trusted keys. */
export interface KeyChoice {
  readonly iss: string | undefined;
  readonly kid: string | undefined;
  /** Standard base64 of DER certificates, leaf first. */
  readonly x5c: readonly string[] | undefined;
}

/** What an issuer may root: mandates, or credentials of these types (`vct`) and nothing else. */
export type IssuerRole =
  | { readonly kind: 'mandates' }
  | { readonly kind: 'credentials'; readonly vct: ReadonlySet<string> };

export type FoundKey =
  | { readonly kind: 'found'; readonly issuer: string; readonly role: IssuerRole; readonly key: VerificationKey }
  | { readonly kind: 'refused'; readonly reason: 'untrusted_issuer' | 'unknown_key' }
  /** There are no keys of this issuer, or only old ones, and none can be fetched now. */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** `find` waits only when a remote issuer is asked for a key id. */
export interface TrustedIssuers {
  find(choice: KeyChoice): FoundKey | Promise<FoundKey>;
}
