/** A key of the merchant's host: it signs JSON, and its signatures name it by its DID URL. */

import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';
import { didUrlOf, didWebOf } from './did-web.ts';
import { readSigningKey } from './signing-key.ts';

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
