/** `signing`: the key that signs what buyers keep, and the keys that did before. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { publicJwk, readSigningKey } from '../../crypto/signing-key.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { SigningConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';
import { type KeyUses, readP256Jwk } from './published-keys.ts';

const AT = 'signing';
const SIGNING = schema.properties.signing.properties;

/** Undefined where nothing is signed, or after a problem. */
export function deriveSigning(
  { signing }: ConfigDocument,
  uses: KeyUses,
  problems: ProblemList,
): SigningConfig | undefined {
  if (signing === undefined || !problems.readable(AT)) return undefined;
  if (problems.sound(`${AT}.key`)) {
    const reading = readSigningKey(signing.key);
    if (reading.ok) {
      uses.note(`${AT}.key`, reading.key.publicJwk);
      uses.ids.add(reading.key.publicJwk.kid);
    } else problems.add(`${AT}.key`, reading.message);
  }
  const before = problems.sound(`${AT}.alsoPublish`) ? (signing.alsoPublish ?? []) : [];
  const alsoPublish = before.flatMap((jwk, index) => {
    const path = memberPath(`${AT}.alsoPublish`, index);
    const key = readP256Jwk(jwk, path, problems);
    if (key === undefined) return [];
    // Signatures name their key by it.
    if (key.kid !== publicJwk(key).kid)
      problems.add(`${path}.kid`, 'must be the RFC 7638 thumbprint of the key, as /.well-known/jwks.json had it');
    uses.note(path, key);
    uses.ids.add(key.kid);
    return [key];
  });
  if (!problems.sound(AT)) return undefined;
  return { key: signing.key, alsoPublish, offers: signing.offers ?? SIGNING.offers.default };
}
