/** Puts the content of a test mandate into a token: the root of a chain, or a hop (ap2 3). */

import type { JsonObject } from '../../../src/json/json.ts';
import type { Content } from './contents.ts';
import { type Draft, discloseElement, hashOf, placeholder, type Signer } from './tokens.ts';

/** A token that a trusted issuer signs. */
interface RootTerms {
  /** Undefined: the key id alone names the issuer, as in the AP2 SDK. */
  readonly iss: string | undefined;
  readonly iat: number;
  /** Unix seconds; needed where the mandate itself has no end. */
  readonly exp?: number;
}

/** The first token of a presentation. */
export function rootDraft(content: Content, { iss, iat, exp }: RootTerms, { publicJwk }: Signer): Draft {
  const claims = { ...(iss === undefined ? {} : { iss }), iat, ...(exp === undefined ? {} : { exp }) };
  return around(content, { alg: publicJwk.alg, typ: 'dc+sd-jwt', kid: publicJwk.kid }, claims);
}

/** A token that is signed with the key of the one before. */
interface HopTerms {
  /** The segment before, `~` at its end. */
  readonly previous: string;
  readonly aud: string;
  readonly nonce: string;
  readonly iat: number;
}

/** A hop that hands on (its mandate has a `cnf`) or closes. */
export function hopDraft(content: Content, { previous, aud, nonce, iat }: HopTerms, { publicJwk }: Signer): Draft {
  const typ = content.mandate['cnf'] === undefined ? 'kb+sd-jwt' : 'kb+sd-jwt+kb';
  return around(content, { alg: publicJwk.alg, typ }, { iat, aud, nonce, sd_hash: hashOf(previous) });
}

/** The mandate is the one element of `delegate_payload`, and a disclosure. */
function around({ mandate, disclosures }: Content, header: JsonObject, claims: JsonObject): Draft {
  const whole = discloseElement(mandate);
  return {
    header,
    claims: { ...claims, delegate_payload: [placeholder(whole)], _sd_alg: 'sha-256' },
    disclosures: [...disclosures, whole],
  };
}
