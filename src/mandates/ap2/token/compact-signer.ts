import type { SigningKey } from '../../../crypto/signing-key.ts';
import type { JsonObject } from '../../../json/types.ts';

/** Signs claims as a compact JWS (RFC 7515, section 7.1) of one `typ`: the head is the same in all of them. */
export function createCompactSigner(typ: string, key: SigningKey): (claims: JsonObject) => string {
  const { alg, kid } = key.publicJwk;
  const head = encoded(JSON.stringify({ alg, typ, kid }));
  return function signed(claims) {
    const input = `${head}.${encoded(JSON.stringify(claims))}`;
    return `${input}.${key.sign(input)}`;
  };
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}
