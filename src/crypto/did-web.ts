/** The name of the gateway's keys as did:web, and the document in which readers find them. */

import type { PublicJwk } from './signing-key.ts';

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
