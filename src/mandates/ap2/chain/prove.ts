import { confirmedKey, mandateOf } from '../model/claims.ts';
import { Refused } from '../model/reasons.ts';
import { resolveDisclosures } from '../token/disclosures.ts';
import { openToken } from '../token/head.ts';
import type { Token } from '../token/jws.ts';
import { type SegmentText, sha256 } from '../token/segments.ts';
import { publicKeyOf, verifySignature } from '../trust/keys.ts';
import type { TrustedIssuers, VerificationKey } from '../trust/trust.ts';
import type { ChainCache, ProvenSegment, RootSigner } from './cache.ts';
import { rootKey } from './root-key.ts';

/** A segment before it is proven: its token, opened and not believed, or the very segment that was proven before. */
export type Pending = {
  readonly text: SegmentText;
  readonly sdHash: string;
  /** The digests of the exact texts up to here, root first: what a proven segment is known by. */
  readonly trail: string;
} & ({ readonly kind: 'opened'; readonly token: Token } | { readonly kind: 'known'; readonly segment: ProvenSegment });

/**
 * Opens all tokens before the first signature is checked (ap2 7.6, step 5); a segment that was proven before is not parsed. `now` in unix
 * seconds.
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
 * Proves a root with the key that the operator trusts for it (steps 6 and 7). `noteIssuer` is told the issuer once the signature was good.
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

function checkSignature({ header, signature, signingInput }: Token, key: VerificationKey): void {
  if (header['alg'] !== key.alg) throw new Refused('unsupported_algorithm');
  if (!verifySignature(key, signingInput, signature)) throw new Refused('invalid_signature');
}

function resolved({ text, sdHash }: Pending, token: Token, signer: RootSigner): ProvenSegment {
  const claims = resolveDisclosures(token.claims, text.disclosures);
  return { id: sha256(token.signingInput), sdHash, jwt: text.jwt, claims, mandate: mandateOf(claims), signer };
}
