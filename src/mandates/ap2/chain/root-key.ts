import type { Json, JsonObject } from '../../../json/types.ts';
import { Refused } from '../model/reasons.ts';
import type { KeyChoice, TrustedIssuers, VerificationKey } from '../trust/trust.ts';
import type { RootSigner } from './cache.ts';

/** The key that a root has to be signed with, and whose it is. */
interface RootKey {
  readonly signer: RootSigner;
  readonly key: VerificationKey;
}

/**
 * Finds the one key that the operator trusts for a root (ap2 7.5; ap2 7.6, step 6). `iss`, `kid` and `x5c` only choose among the
 * configured issuers.
 * @throws Refused
 */
export async function rootKey(trust: TrustedIssuers, header: JsonObject, claims: JsonObject): Promise<RootKey> {
  const found = await trust.find(choiceOf(header, claims));
  if (found.kind === 'refused') throw new Refused(found.reason);
  if (found.kind === 'unavailable') throw new Refused('provider_unavailable', {}, found.cause);
  // Where a certificate chooses the key, nobody has looked at it.
  if (header['kid'] !== undefined && typeof header['kid'] !== 'string') throw new Refused('unknown_key');
  return { signer: { issuer: found.issuer, role: found.role }, key: found.key };
}

function choiceOf({ kid, x5c }: JsonObject, { iss }: JsonObject): KeyChoice {
  // Only a token without `iss` may be found by its `kid` alone; one whose `iss` is no name is nobody's.
  if (iss !== undefined && typeof iss !== 'string') throw new Refused('untrusted_issuer');
  // Whose the token is comes first: a `kid` that is no text finds no key of anybody.
  return {
    iss,
    kid: typeof kid === 'string' ? kid : undefined,
    x5c: x5c === undefined ? undefined : certificates(x5c),
  };
}

/** What is no list of texts is a chain of no certificates. */
function certificates(x5c: Json): readonly string[] {
  return Array.isArray(x5c) && x5c.every((entry: Json) => typeof entry === 'string') ? x5c : [];
}
