/** The issuers that the configuration trusts, and where the keys of each come from (ap2 7.5). */

import type { KeyObject, X509Certificate } from 'node:crypto';
import type { JsonObject } from '../../../json/types.ts';
import { readStaticKeys } from './jwks.ts';

/** Keys of one issuer by their ids. */
export type KeysById = ReadonlyMap<string, VerificationKey>;

/** Where the keys of an issuer come from: one source each, so that no two can disagree. */
export type KeySource =
  /** Configured, or in the issuer's name itself (`did:key`). */
  | { readonly kind: 'static'; readonly keys: KeysById }
  | { readonly kind: 'jwks'; readonly url: string }
  | { readonly kind: 'did-web'; readonly did: string; readonly url: string }
  /** Certificates in the head of the token; their leaf is for `host`. */
  | { readonly kind: 'x5c'; readonly host: string; readonly roots: readonly X509Certificate[] };

/** One issuer that the operator trusts. */
export interface IssuerSettings {
  /** `iss`, exact text. */
  readonly id: string;
  readonly role: IssuerRole;
  /** Whether its tokens may come without `iss`. Static keys only. */
  readonly allowKidOnly: boolean;
  readonly source: KeySource;
}

/** What an issuer may root: mandates, unless credentials of these types are listed. */
export function roleOf(credentialVct: readonly string[] | undefined): IssuerRole {
  return credentialVct === undefined ? { kind: 'mandates' } : { kind: 'credentials', vct: new Set(credentialVct) };
}

/** An issuer with known public keys (JWKs). @throws Error that names what is wrong with a key */
export function staticIssuer(issuer: {
  readonly id: string;
  readonly keys: readonly JsonObject[];
  readonly credentialVct?: readonly string[] | undefined;
  readonly allowKidOnly?: boolean | undefined;
}): IssuerSettings {
  const { keys, faults } = readStaticKeys(issuer.keys);
  const [fault] = faults;
  if (fault !== undefined) throw new Error(`key ${fault.index} of ${issuer.id} ${fault.message}`);
  return {
    id: issuer.id,
    role: roleOf(issuer.credentialVct),
    allowKidOnly: issuer.allowKidOnly ?? false,
    source: { kind: 'static', keys },
  };
}

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
