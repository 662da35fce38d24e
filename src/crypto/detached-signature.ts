import { canonicalJson } from '../json/canonical.ts';
import type { Json } from '../json/types.ts';
import type { SigningKey } from './signing-key.ts';

/** A JWS in the flattened serialization without its payload (RFC 7515, appendix F): the document itself is the payload. */
interface DetachedSignature {
  readonly protected: string;
  readonly signature: string;
}

/** Signs the canonical form (RFC 8785) of a document. `keySetUrl` tells a reader where the public key is. */
export function signDocument(document: Json, key: SigningKey, keySetUrl: string): DetachedSignature {
  const header = { alg: key.publicJwk.alg, kid: key.publicJwk.kid, typ: 'JOSE', jku: keySetUrl };
  const head = encoded(JSON.stringify(header));
  return { protected: head, signature: key.sign(`${head}.${encoded(canonicalJson(document))}`) };
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}
