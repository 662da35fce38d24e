import type { JsonObject } from '../../../json/types.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { type MandateFamily, Refused } from '../model/reasons.ts';
import { checkTimes, earliestEnd } from '../model/times.ts';
import { leafReference, splitPresentation } from '../token/segments.ts';
import type { TrustedIssuers } from '../trust/trust.ts';
import { type ChainCache, createChainCache, type ProvenSegment } from './cache.ts';
import type { Segment, VerifiedChain } from './chain.ts';
import { checkHandedOn, checkHop, checkTerminal, type HopProfile } from './hop.ts';
import { checkTypes } from './mandate-type.ts';
import { openSegments, type Pending, proveHop, proveRoot } from './prove.ts';

/** What a chain is checked with. The cache goes with the trusted issuers: other issuers, another cache. */
interface ChainParts {
  readonly profile: HopProfile & Pick<Ap2Profile, 'algorithms'>;
  readonly trust: TrustedIssuers;
  readonly cache?: ChainCache;
}

/**
 * Checks a presentation by itself (ap2 7.6, steps 4 to 10): not whether it is for some purchase, nor whether its nonce is the right
 * one. `now` in unix seconds. `noteIssuer` is told the issuer as soon as the signature of the root was good, whatever comes after.
 * Throws `Refused`.
 */
type VerifyChain = (
  presentation: string,
  family: MandateFamily,
  now: number,
  noteIssuer?: (issuer: string) => void,
) => Promise<VerifiedChain>;

/** A verifier of chains. Cost rises from step to step, and no key is imported from a token that was not verified. */
export function createChainVerifier({ profile, trust, cache = createChainCache() }: ChainParts): VerifyChain {
  return async function verifyChain(presentation, family, now, noteIssuer) {
    const [root, ...hops] = openSegments(splitPresentation(presentation), profile.algorithms, cache, now);
    if (root === undefined) throw new Refused('mandate_malformed');
    let closed = await proveRoot(root, trust, noteIssuer);
    const before: ProvenSegment[] = [];
    for (const hop of hops) {
      before.push(closed);
      closed = proveHop(hop, closed, cache);
    }
    const segments = [...before, closed];
    const earliest = checkTimes(segments.flatMap(documentsOf), now, profile.clockSkewSeconds);
    const fresh = checkHops(before, closed, profile, now);
    checkTypes(segments, closed.signer.role, family);
    remember([root, ...hops], before, cache, now);
    const open = before.filter(({ mandate }) => mandate !== undefined);
    return {
      ...closed.signer,
      mode: open.length === 0 ? 'direct' : 'autonomous',
      open,
      closed,
      nonce: fresh?.nonce,
      ends: Math.min(earliest, fresh?.ends ?? earliest),
      reference: leafReference(closed.jwt, closed.sdHash),
    };
  };
}

/**
 * Step 9, root first: the nonce of the hop that closes the chain, and when it is too old. Undefined for a chain without hops: its root
 * may name an audience, and then names ours.
 */
function checkHops(
  before: readonly ProvenSegment[],
  closed: ProvenSegment,
  profile: HopProfile,
  now: number,
): { readonly nonce: string; readonly ends: number } | undefined {
  const [last, ...others] = before.toReversed();
  if (last === undefined) {
    const { aud } = closed.claims;
    if (aud !== undefined && aud !== profile.audience) throw new Refused('audience_mismatch');
    return undefined;
  }
  for (const [at, segment] of others.toReversed().entries())
    checkHandedOn(checkHop((before[at + 1] ?? last).claims, segment));
  const hop = checkHop(closed.claims, last);
  return { nonce: hop.nonce, ends: checkTerminal(hop, profile, now) };
}

/** Token and content: both have times. */
function documentsOf({ claims, mandate }: Segment): readonly JsonObject[] {
  return mandate === undefined ? [claims] : [claims, mandate];
}

/** Keeps what others may be made on, once all of the chain was right: what does not lead to a right one is not worth its place. */
function remember(pending: readonly Pending[], before: readonly ProvenSegment[], cache: ChainCache, now: number): void {
  for (const [at, segment] of before.entries()) {
    const { kind, trail = '' } = pending[at] ?? {};
    if (kind === 'opened') cache.keep(trail, segment, earliestEnd(documentsOf(segment)), now);
  }
}
