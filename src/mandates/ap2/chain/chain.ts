/** The verified chain and its segments, and the memory that makes the second time cheaper. */

import type { KeyObject } from 'node:crypto';
import type { JsonObject } from '../../../json/types.ts';
import { RecentMap } from '../../../time/recent-map.ts';
import type { MandateReference } from '../model/reasons.ts';
import type { IssuerRole } from '../trust/issuer.ts';
import type { ImportedKeys } from '../trust/keys.ts';

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
/** Longest that a signature counts as proven, seconds; a withdrawn key opens chains that long. */
export const SEGMENT_TTL_SECONDS = 300;

/** Who signed a root, and what this issuer may sign. */
export interface RootSigner {
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
