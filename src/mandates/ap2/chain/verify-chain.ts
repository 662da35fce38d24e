import type { Json, JsonObject } from '../../../json/types.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { checkTimes, earliestEnd, hasConfirmation, isTime } from '../model/readers.ts';
import { type MandateFamily, Refused } from '../model/reasons.ts';
import { leafReference, sha256, splitPresentation } from '../token/segments.ts';
import type { IssuerRole, TrustedIssuers } from '../trust/trust.ts';
import { type ChainCache, createChainCache, type ProvenSegment } from './cache.ts';
import type { Segment, VerifiedChain } from './chain.ts';
import { openSegments, type Pending, proveHop, proveRoot } from './prove.ts';

/** The segment that a hop was made on. */
interface Before {
  readonly sdHash: string;
  readonly jwt: string;
}

/** What a profile demands of the hop that closes a chain. */
type HopProfile = Pick<Ap2Profile, 'audience' | 'clockSkewSeconds' | 'maxPresentationAgeSeconds'>;

/** When, for whom and for what a hop was made. */
interface Hop {
  readonly iat: number;
  readonly aud: Json;
  readonly nonce: string;
}

/**
 * Checks that a hop was made on exactly this segment: with its disclosures (`sd_hash`), or on its
 * token alone (`issuer_jwt_hash`). Every hop has `iat`, `aud` and `nonce`, also one that hands on
 * to a sub-agent (ap2 7.6, step 9).
 * @throws Refused
 */
function checkHop(claims: JsonObject, before: Before): Hop {
  const { sd_hash: whole, issuer_jwt_hash: tokenAlone, iat, aud, nonce } = claims;
  if ((whole === undefined) === (tokenAlone === undefined)) throw new Refused('chain_broken');
  if (whole !== undefined && whole !== before.sdHash) throw new Refused('chain_broken');
  if (tokenAlone !== undefined && tokenAlone !== sha256(before.jwt)) throw new Refused('chain_broken');
  if (!isTime(iat) || aud === undefined || aud === null) throw new Refused('claims_invalid');
  if (typeof nonce !== 'string' || nonce === '') throw new Refused('claims_invalid');
  return { iat, aud, nonce };
}

/**
 * Checks a hop that hands the mandate on: it is for one sub-agent, whoever that is. @throws Refused
 */
function checkHandedOn({ aud }: Hop): void {
  if (typeof aud !== 'string' || aud === '') throw new Refused('claims_invalid');
}

/**
 * Checks that the hop that closes a chain is for this merchant and fresh; `now` in unix seconds.
 * Whether its nonce is the right one is for the purchase to say. Returns when it is too old, before
 * the skew.
 * @throws Refused
 */
function checkTerminal({ aud, iat }: Hop, profile: HopProfile, now: number): number {
  // RFC 9901, section 4.3: one string. A list would make a proof for us a proof for others.
  if (aud !== profile.audience) throw new Refused('audience_mismatch');
  const ends = iat + profile.maxPresentationAgeSeconds;
  if (now > ends + profile.clockSkewSeconds) throw new Refused('stale_presentation');
  return ends;
}

/** `vct` of the mandates of a family, version included (ap2 2.1). */
const OPEN: Readonly<Record<MandateFamily, string>> = {
  checkout: 'mandate.checkout.open.1',
  payment: 'mandate.payment.open.1',
};
const CLOSED: Readonly<Record<MandateFamily, string>> = {
  checkout: 'mandate.checkout.1',
  payment: 'mandate.payment.1',
};

/**
 * Checks that every segment has the type of its place (ap2 7.6, step 10): open mandates and a
 * closed one at the end, or a credential of a listed type before them; no `cnf` at the end; and an
 * `exp` in every segment but a closing hop.
 * @throws Refused
 */
function checkTypes(segments: readonly Segment[], role: IssuerRole, family: MandateFamily): void {
  const last = segments.length - 1;
  for (const [at, segment] of segments.entries())
    if (!isOfType(segment, at, last, role, family)) throw new Refused('wrong_mandate_type');
  for (const [at, { claims, mandate }] of segments.entries()) {
    if (at === last && hasConfirmation(claims, mandate)) throw new Refused('chain_broken');
    // The hop that closes a chain is fresh, or it was refused before.
    if ((at < last || last === 0) && claims['exp'] === undefined && mandate?.['exp'] === undefined)
      throw new Refused('claims_invalid');
  }
}

function isOfType(
  { claims, mandate }: Segment,
  at: number,
  last: number,
  role: IssuerRole,
  family: MandateFamily,
): boolean {
  if (at > 0 || role.kind === 'mandates') return mandate?.['vct'] === (at === last ? CLOSED : OPEN)[family];
  const types: ReadonlySet<unknown> = role.vct;
  return last > 0 && mandate === undefined && types.has(claims['vct']);
}

/**
 * What a chain is checked with. The cache goes with the trusted issuers: other issuers, another
 * cache.
 */
interface ChainParts {
  readonly profile: HopProfile & Pick<Ap2Profile, 'algorithms'>;
  readonly trust: TrustedIssuers;
  readonly cache?: ChainCache;
}

/**
 * Checks a presentation by itself (ap2 7.6, steps 4 to 10): not whether it is for some purchase,
 * nor whether its nonce is the right one. `now` in unix seconds. `noteIssuer` is told the issuer as
 * soon as the signature of the root was good, whatever comes after. Throws `Refused`.
 */
type VerifyChain = (
  presentation: string,
  family: MandateFamily,
  now: number,
  noteIssuer?: (issuer: string) => void,
) => Promise<VerifiedChain>;

/**
 * A verifier of chains. Cost rises from step to step, and no key is imported from a token that was
 * not verified.
 */
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
 * Step 9, root first: the nonce of the hop that closes the chain, and when it is too old. Undefined
 * for a chain without hops: its root may name an audience, and then names ours.
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

/**
 * Keeps what others may be made on, once all of the chain was right: what does not lead to a right
 * one is not worth its place.
 */
function remember(pending: readonly Pending[], before: readonly ProvenSegment[], cache: ChainCache, now: number): void {
  for (const [at, segment] of before.entries()) {
    const { kind, trail = '' } = pending[at] ?? {};
    if (kind === 'opened') cache.keep(trail, segment, earliestEnd(documentsOf(segment)), now);
  }
}
