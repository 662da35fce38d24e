/** A key of the merchant's host, its DID, and the document in which readers find it. */

import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';
import { type PublicJwk, readSigningKey } from './signing-key.ts';

export interface HostKey {
  /** The DID URL of the key. */
  readonly kid: string;
  /**
   * A compact JWS (RFC 7515, ES256) over the canonical form (RFC 8785) of a payload. `typ`: the
   * kind of document, where it is not the official package's.
   */
  sign(payload: JsonObject, typ?: string): string;
}

/**
 * The key in a PEM, as one of the host of `publicBaseUrl`.
 * @throws Error for a key that the configuration must have refused
 */
export function hostKey(pem: string, publicBaseUrl: string): HostKey {
  const reading = readSigningKey(pem);
  if (!reading.ok) throw new Error('the configuration let a key pass that is none');
  const { key } = reading;
  const kid = didUrlOf(didWebOf(publicBaseUrl), key.publicJwk);
  const heads = new Map<string | undefined, string>();
  const headOf = (typ: string | undefined): string => {
    const head = encoded(JSON.stringify({ alg: key.publicJwk.alg, kid, ...(typ === undefined ? {} : { typ }) }));
    heads.set(typ, head);
    return head;
  };
  return {
    kid,
    sign(payload, typ) {
      const signed = `${heads.get(typ) ?? headOf(typ)}.${encoded(canonicalJson(payload))}`;
      return `${signed}.${key.sign(signed)}`;
    },
  };
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}

/** Where the document of the DID is. */
export const DID_PATH = '/.well-known/did.json';

/** The did:web of the host of a URL. */
export function didWebOf(url: string): string {
  return `did:web:${encodeURIComponent(new URL(url).host)}`;
}

/** The name of a key as signatures have it: a DID URL. */
export function didUrlOf(did: string, { kid }: Pick<PublicJwk, 'kid'>): string {
  return `${did}#${kid}`;
}

/** The document of a DID whose keys make assertions (DID 1.0, sections 5.2 and 5.3.2). */
export function didDocument(did: string, keys: readonly PublicJwk[]) {
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: keys.map((publicKeyJwk) => ({
      id: didUrlOf(did, publicKeyJwk),
      type: 'JsonWebKey2020',
      controller: did,
      publicKeyJwk,
    })),
    assertionMethod: keys.map((key) => didUrlOf(did, key)),
  };
}
