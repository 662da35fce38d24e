/**
 * Verifies a presentation by itself (ap2 7.6, steps 4 to 10): signatures, times, bindings and types
 * of its segments. Whether it is for some purchase is checked afterwards. A memory of proven
 * segments makes the second time cheaper.
 */

import type { KeyObject } from 'node:crypto';
import type { Json, JsonObject } from '../../json/json.ts';
import { RecentMap } from '../../time/recent-map.ts';
import type { IssuerRole, KeyChoice, TrustedIssuers } from './issuers.ts';
import { type ImportedKeys, publicKeyOf, type VerificationKey, verifySignature } from './keys.ts';
import type { Ap2Profile } from './purchase.ts';
import { checkTimes, confirmedKey, earliestEnd, hasConfirmation, isTime, mandateOf } from './readers.ts';
import { type MandateFamily, type MandateReference, Refused } from './reasons.ts';
import {
  leafReference,
  openToken,
  resolveDisclosures,
  type SegmentText,
  sha256,
  splitPresentation,
  type Token,
} from './sd-jwt.ts';

/** A segment of a presentation after steps 4 to 7 of ap2 7.6. */
export interface Segment {
  /** Its identity, whatever its signature: base64url of SHA-256 over `header.payload`. */
  readonly id: string;
  /** base64url of SHA-256 over JWT and disclosures: what the next hop binds to. */
  readonly sdHash: string;
  /** The claims of the token with its disclosures put in. */
  readonly claims: JsonObject;
  /** The one revealed mandate of `delegate_payload`; undefined for a user credential. */
  readonly mandate: JsonObject | undefined;
}

/** A presentation that is right by itself. Whether it is for this purchase is checked later. */
export interface VerifiedChain {
  readonly issuer: string;
  readonly role: IssuerRole;
  readonly mode: 'direct' | 'autonomous';
  /** Open mandates, root first; empty in direct mode. */
  readonly open: readonly Segment[];
  readonly closed: Segment;
  /** `nonce` of the closing hop; undefined in a chain without hops. */
  readonly nonce: string | undefined;
  /** The earliest `exp`, or when the closing hop is too old; unix seconds, without the skew. */
  readonly ends: number;
  readonly reference: MandateReference;
}

/** Entries of each cache (ap2 16). */
const MAX_CACHED_KEYS = 1_000;
export const MAX_CACHED_SEGMENTS = 1_000;
/** Longest time that a signature counts as proven, seconds, also after its key is withdrawn. */
export const SEGMENT_TTL_SECONDS = 300;

/** Who signed a root, and what this issuer may sign. */
interface RootSigner {
  readonly issuer: string;
  readonly role: IssuerRole;
}

/** A segment with a verified signature and resolved disclosures. */
export interface ProvenSegment extends Segment {
  readonly jwt: string;
  /** Of the root of its chain. */
  readonly signer: RootSigner;
}

/**
 * The imported keys of `cnf`, and proven segments that hops were made on. A segment is known by the
 * exact text of itself and of all before it; its times are checked on every use. Closed mandates
 * and verdicts are never kept.
 */
export interface ChainCache {
  readonly keys: ImportedKeys;
  /** `trail`: the digests of the exact texts, root first. `now` in unix seconds. */
  segment(trail: string, now: number): ProvenSegment | undefined;
  /** `ends`: the end of the segment itself, unix seconds. */
  keep(trail: string, segment: ProvenSegment, ends: number, now: number): void;
}

/** A cache belongs to one set of trusted issuers: others need a new one. */
export function createChainCache(): ChainCache {
  const segments = new RecentMap<{ segment: ProvenSegment; until: number }>(MAX_CACHED_SEGMENTS);
  return {
    keys: new RecentMap<KeyObject>(MAX_CACHED_KEYS),
    segment(trail, now) {
      const entry = segments.use(trail);
      return entry !== undefined && now < entry.until ? entry.segment : undefined;
    },
    keep(trail, segment, ends, now) {
      const until = Math.min(ends, now + SEGMENT_TTL_SECONDS);
      const entry = segments.use(trail);
      if (entry === undefined) segments.add(trail, { segment, until });
      else Object.assign(entry, { segment, until });
    },
  };
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
 * Checks the hops (step 9), root first. Returns the nonce of the closing hop and the moment when
 * that hop is too old; undefined for a chain without hops, whose root may name our audience only.
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
 * Checks that the hop that closes a chain is for this merchant and fresh; `now` in unix seconds.
 * Its nonce is compared later. Returns the moment when it is too old, without the skew.
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
    // A closing hop needs no `exp`: it was found fresh before.
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

/** A segment before it is proven: its opened token, or the segment that was proven before. */
type Pending = {
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
function openSegments(
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
async function proveRoot(
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
function proveHop(pending: Pending, before: ProvenSegment, cache: ChainCache): ProvenSegment {
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
