/**
 * Verifies a presentation by itself (ap2 7.6, steps 4 to 10): signatures, times, bindings and types
 * of its segments. Whether it is for some purchase is checked afterwards.
 */

import type { Json, JsonObject } from '../../../json/types.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { checkTimes, earliestEnd, hasConfirmation, isTime } from '../model/readers.ts';
import { type MandateFamily, Refused } from '../model/reasons.ts';
import { leafReference, sha256, splitPresentation } from '../token/segments.ts';
import type { IssuerRole, TrustedIssuers } from '../trust/trust.ts';
import { type ChainCache, createChainCache, type ProvenSegment } from './cache.ts';
import type { Segment, VerifiedChain } from './chain.ts';
import { openSegments, type Pending, proveHop, proveRoot } from './prove.ts';

/** `vct` of the mandates of a family, version included (ap2 2.1). */
const OPEN: Readonly<Record<MandateFamily, string>> = {
  checkout: 'mandate.checkout.open.1',
  payment: 'mandate.payment.open.1',
};
const CLOSED: Readonly<Record<MandateFamily, string>> = {
  checkout: 'mandate.checkout.1',
  payment: 'mandate.payment.1',
};

/** What a profile demands of the hop that closes a chain. */
type HopProfile = Pick<Ap2Profile, 'audience' | 'clockSkewSeconds' | 'maxPresentationAgeSeconds'>;

/** The cache belongs to the trusted issuers: other issuers, another cache. */
interface ChainParts {
  readonly profile: HopProfile & Pick<Ap2Profile, 'algorithms'>;
  readonly trust: TrustedIssuers;
  readonly cache?: ChainCache;
}

/**
 * `now` in unix seconds. Calls `noteIssuer` as soon as the signature of the root is verified,
 * whatever fails after that. Throws `Refused`.
 */
type VerifyChain = (
  presentation: string,
  family: MandateFamily,
  now: number,
  noteIssuer?: (issuer: string) => void,
) => Promise<VerifiedChain>;

/** When, for which audience and with which nonce a hop was made. */
interface Hop {
  readonly iat: number;
  readonly aud: Json;
  readonly nonce: string;
}

/** Cost rises from step to step, and keys are imported only from verified tokens. */
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
    const closing = checkHops(before, closed, profile, now);
    checkTypes(segments, closed.signer.role, family);
    remember([root, ...hops], before, cache, now);
    const open = before.filter(({ mandate }) => mandate !== undefined);
    return {
      ...closed.signer,
      mode: open.length === 0 ? 'direct' : 'autonomous',
      open,
      closed,
      nonce: closing?.nonce,
      ends: Math.min(earliest, closing?.ends ?? earliest),
      reference: leafReference(closed.jwt, closed.sdHash),
    };
  };
}

/** Token and mandate: both have times. */
function documentsOf({ claims, mandate }: Segment): readonly JsonObject[] {
  return mandate === undefined ? [claims] : [claims, mandate];
}

/**
 * Step 9, root first: the nonce of the hop that closes the chain, and when that hop is too old.
 * Undefined for a chain without hops: its root may name an audience, which then must be ours.
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
    checkHandedOn(readHop((before[at + 1] ?? last).claims, segment));
  const hop = readHop(closed.claims, last);
  return { nonce: hop.nonce, ends: checkClosing(hop, profile, now) };
}

/**
 * Reads a hop that was made on exactly the segment before it: with its disclosures (`sd_hash`), or
 * on its token alone (`issuer_jwt_hash`). Every hop has `iat`, `aud` and `nonce`, also one that
 * hands on to a sub-agent (ap2 7.6, step 9).
 * @throws Refused
 */
function readHop(claims: JsonObject, before: ProvenSegment): Hop {
  const { sd_hash: whole, issuer_jwt_hash: tokenAlone, iat, aud, nonce } = claims;
  if ((whole === undefined) === (tokenAlone === undefined)) throw new Refused('chain_broken');
  if (whole !== undefined && whole !== before.sdHash) throw new Refused('chain_broken');
  if (tokenAlone !== undefined && tokenAlone !== sha256(before.jwt)) throw new Refused('chain_broken');
  if (!isTime(iat) || aud === undefined || aud === null) throw new Refused('claims_invalid');
  if (typeof nonce !== 'string' || nonce === '') throw new Refused('claims_invalid');
  return { iat, aud, nonce };
}

/** A hop that hands the mandate on is for one sub-agent, whichever that is. @throws Refused */
function checkHandedOn({ aud }: Hop): void {
  if (typeof aud !== 'string' || aud === '') throw new Refused('claims_invalid');
}

/**
 * The hop that closes a chain is for this merchant and fresh; `now` in unix seconds. Its nonce is
 * compared later, with the purchase. Returns when it is too old, without the skew.
 * @throws Refused
 */
function checkClosing({ aud, iat }: Hop, profile: HopProfile, now: number): number {
  // RFC 9901, section 4.3: one string. A list would make a proof for us a proof for others.
  if (aud !== profile.audience) throw new Refused('audience_mismatch');
  const ends = iat + profile.maxPresentationAgeSeconds;
  if (now > ends + profile.clockSkewSeconds) throw new Refused('stale_presentation');
  return ends;
}

/**
 * Checks that every segment has the type of its position (ap2 7.6, step 10): open mandates and a
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
    // A closing hop was found fresh before.
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

/** Keeps the segments before the last one, but only of a chain that passed every check. */
function remember(pending: readonly Pending[], before: readonly ProvenSegment[], cache: ChainCache, now: number): void {
  for (const [at, segment] of before.entries()) {
    const { kind, trail = '' } = pending[at] ?? {};
    if (kind === 'opened') cache.keep(trail, segment, earliestEnd(documentsOf(segment)), now);
  }
}
