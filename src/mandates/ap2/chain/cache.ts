/** Remembers imported keys and proven open segments, so that a chain is cheaper the second time. */

import type { KeyObject } from 'node:crypto';
import { RecentMap } from '../../../time/recent-map.ts';
import type { ImportedKeys } from '../trust/keys.ts';
import type { IssuerRole } from '../trust/trust.ts';
import type { Segment } from './chain.ts';

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
