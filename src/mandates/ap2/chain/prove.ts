/**
 * Proves the segments of a chain one by one: the key of the root comes from the trusted issuers,
 * the key of a hop from the segment before it (ap2 7.6, steps 5 to 7).
 */

import type { Json, JsonObject } from '../../../json/types.ts';
import { confirmedKey, mandateOf } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';
import { resolveDisclosures } from '../token/disclosures.ts';
import { openToken, type Token } from '../token/jws.ts';
import { type SegmentText, sha256 } from '../token/segments.ts';
import { publicKeyOf, verifySignature } from '../trust/keys.ts';
import type { KeyChoice, TrustedIssuers, VerificationKey } from '../trust/trust.ts';
import type { ChainCache, ProvenSegment, RootSigner } from './cache.ts';

/** A segment before it is proven: its opened token, or the segment that was proven before. */
export type Pending = {
  readonly text: SegmentText;
  readonly sdHash: string;
  /** The digests of the exact texts up to here, root first: what a proven segment is known by. */
  readonly trail: string;
} & ({ readonly kind: 'opened'; readonly token: Token } | { readonly kind: 'known'; readonly segment: ProvenSegment });

/** The key that a root must be signed with, and its issuer. */
interface RootKey {
  readonly signer: RootSigner;
  readonly key: VerificationKey;
}

/**
 * Opens all tokens before the first signature is checked (ap2 7.6, step 5); a segment that was
 * proven before is not parsed. `now` in unix seconds.
 * @throws Refused
 */
export function openSegments(
  texts: readonly SegmentText[],
  algorithms: ReadonlySet<string>,
  cache: ChainCache,
  now: number,
): readonly Pending[] {
  let trail = '';
  return texts.map((text, at) => {
    const sdHash = sha256(text.text);
    trail += `.${sdHash}`;
    const closing = at === texts.length - 1;
    const segment = closing ? undefined : cache.segment(trail, now);
    if (segment !== undefined) return { text, sdHash, trail, kind: 'known', segment };
    const position = at === 0 ? 'root' : closing ? 'closing' : 'handed_on';
    return { text, sdHash, trail, kind: 'opened', token: openToken(text.jwt, position, algorithms) };
  });
}

/**
 * Proves a root with the key that the operator trusts for it (steps 6 and 7). Calls `noteIssuer`
 * once the signature is verified.
 * @throws Refused
 */
export async function proveRoot(
  pending: Pending,
  trust: TrustedIssuers,
  noteIssuer?: (issuer: string) => void,
): Promise<ProvenSegment> {
  if (pending.kind === 'known') {
    noteIssuer?.(pending.segment.signer.issuer);
    return pending.segment;
  }
  const { key, signer } = await rootKey(trust, pending.token.header, pending.token.claims);
  checkSignature(pending.token, key);
  noteIssuer?.(signer.issuer);
  return resolved(pending, pending.token, signer);
}

/** Proves a hop with the key that the segment before it names (steps 6 and 7). @throws Refused */
export function proveHop(pending: Pending, before: ProvenSegment, cache: ChainCache): ProvenSegment {
  if (pending.kind === 'known') return pending.segment;
  checkSignature(pending.token, publicKeyOf(confirmedKey(before.claims, before.mandate), cache.keys));
  return resolved(pending, pending.token, before.signer);
}

/**
 * Finds the one key that the operator trusts for a root (ap2 7.5; ap2 7.6, step 6). `iss`, `kid`
 * and `x5c` only choose among the configured issuers.
 * @throws Refused
 */
export async function rootKey(trust: TrustedIssuers, header: JsonObject, claims: JsonObject): Promise<RootKey> {
  const found = await trust.find(choiceOf(header, claims));
  if (found.kind === 'refused') throw new Refused(found.reason);
  if (found.kind === 'unavailable') throw new Refused('provider_unavailable', {}, found.cause);
  // A key chosen by certificates was found without its `kid`.
  if (header['kid'] !== undefined && typeof header['kid'] !== 'string') throw new Refused('unknown_key');
  return { signer: { issuer: found.issuer, role: found.role }, key: found.key };
}

function choiceOf({ kid, x5c }: JsonObject, { iss }: JsonObject): KeyChoice {
  // Only a token without `iss` may be found by its `kid` alone.
  if (iss !== undefined && typeof iss !== 'string') throw new Refused('untrusted_issuer');
  // The issuer is decided first: a `kid` that is no text then finds no key.
  return {
    iss,
    kid: typeof kid === 'string' ? kid : undefined,
    x5c: x5c === undefined ? undefined : certificates(x5c),
  };
}

/** Anything but a list of texts is a chain of no certificates. */
function certificates(x5c: Json): readonly string[] {
  return Array.isArray(x5c) && x5c.every((entry: Json) => typeof entry === 'string') ? x5c : [];
}

function checkSignature({ header, signature, signingInput }: Token, key: VerificationKey): void {
  if (header['alg'] !== key.alg) throw new Refused('unsupported_algorithm');
  if (!verifySignature(key, signingInput, signature)) throw new Refused('invalid_signature');
}

function resolved({ text, sdHash }: Pending, token: Token, signer: RootSigner): ProvenSegment {
  const claims = resolveDisclosures(token.claims, text.disclosures);
  return { id: sha256(token.signingInput), sdHash, jwt: text.jwt, claims, mandate: mandateOf(claims), signer };
}
