/** Splits a presentation into its segments, and names it by the digest of its last one. */

import { hash } from 'node:crypto';
import { type MandateReference, Refused } from '../model/reasons.ts';

/** Of a presentation: a root, two sub-agents and the hop that closes it (ap2 7.6, step 4). */
export const MAX_SEGMENTS = 4;
/** Of one segment. */
export const MAX_DISCLOSURES = 64;
/** Characters of one segment. */
export const MAX_SEGMENT = 16_384;

/** A token and its disclosures as they were sent. */
export interface SegmentText {
  /** With the `~` at its end that joining drops: what `sd_hash` covers. */
  readonly text: string;
  readonly jwt: string;
  /** base64url each, none empty. */
  readonly disclosures: readonly string[];
}

/**
 * Splits a presentation at `~~` and puts back the `~` that every segment but the last lost there
 * (ap2 3). A segment without disclosures is `jwt~`, so `jwt~~jwt~` is a chain of two.
 * @throws Refused
 */
export function splitPresentation(presentation: string): readonly SegmentText[] {
  const pieces = presentation.split('~~', MAX_SEGMENTS + 1);
  if (pieces.length > MAX_SEGMENTS) throw new Refused('mandate_malformed');
  return pieces.map((piece, at) => segmentOf(at === pieces.length - 1 ? piece : `${piece}~`));
}

/** What a receipt for a presentation refers to, right or wrong: its leaf; undefined without one. */
export function referenceOf(presentation: string): MandateReference | undefined {
  const leaf = presentation.slice(presentation.lastIndexOf('~~') + 1).replace(/^~/, '');
  const jwt = leaf.slice(0, Math.max(0, leaf.indexOf('~')));
  return jwt.split('.').length === 3 && leaf.endsWith('~') ? leafReference(jwt, sha256(leaf)) : undefined;
}

/** `sdHash`: of the leaf with its disclosures. */
export function leafReference(jwt: string, sdHash: string): MandateReference {
  return { reference: sha256(jwt), referenceSdHash: sdHash };
}

/** base64url of SHA-256 over the ASCII of a text: every digest of a presentation is one. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url');
}

function segmentOf(text: string): SegmentText {
  const [jwt = '', ...rest] = text.split('~', MAX_DISCLOSURES + 3);
  const disclosures = rest.slice(0, -1);
  if (text.length > MAX_SEGMENT || disclosures.length > MAX_DISCLOSURES) throw new Refused('mandate_malformed');
  // A segment ends in `~`. No disclosure is empty: that would be a `~~`, where segments are split.
  if (rest.at(-1) !== '') throw new Refused('mandate_malformed');
  return { text, jwt, disclosures };
}
