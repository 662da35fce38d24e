import type { Json, JsonObject } from '../../../json/types.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { Refused } from '../model/reasons.ts';
import { isTime } from '../model/times.ts';
import { sha256 } from '../token/segments.ts';

/** The segment that a hop was made on. */
export interface Before {
  readonly sdHash: string;
  readonly jwt: string;
}

/** What a profile demands of the hop that closes a chain. */
export type HopProfile = Pick<Ap2Profile, 'audience' | 'clockSkewSeconds' | 'maxPresentationAgeSeconds'>;

/** When, for whom and for what a hop was made. */
interface Hop {
  readonly iat: number;
  readonly aud: Json;
  readonly nonce: string;
}

/**
 * Checks that a hop was made on exactly this segment: with its disclosures (`sd_hash`), or on its token alone (`issuer_jwt_hash`). Every
 * hop has `iat`, `aud` and `nonce`, also one that hands on to a sub-agent (ap2 7.6, step 9).
 * @throws Refused
 */
export function checkHop(claims: JsonObject, before: Before): Hop {
  const { sd_hash: whole, issuer_jwt_hash: tokenAlone, iat, aud, nonce } = claims;
  if ((whole === undefined) === (tokenAlone === undefined)) throw new Refused('chain_broken');
  if (whole !== undefined && whole !== before.sdHash) throw new Refused('chain_broken');
  if (tokenAlone !== undefined && tokenAlone !== sha256(before.jwt)) throw new Refused('chain_broken');
  if (!isTime(iat) || aud === undefined || aud === null) throw new Refused('claims_invalid');
  if (typeof nonce !== 'string' || nonce === '') throw new Refused('claims_invalid');
  return { iat, aud, nonce };
}

/** Checks a hop that hands the mandate on: it is for one sub-agent, whoever that is. @throws Refused */
export function checkHandedOn({ aud }: Hop): void {
  if (typeof aud !== 'string' || aud === '') throw new Refused('claims_invalid');
}

/**
 * Checks that the hop that closes a chain is for this merchant and fresh; `now` in unix seconds. Whether its nonce is the right one is
 * for the purchase to say. Returns when it is too old, before the skew.
 * @throws Refused
 */
export function checkTerminal({ aud, iat }: Hop, profile: HopProfile, now: number): number {
  // RFC 9901, section 4.3: one string. A list would make a proof for us a proof for others.
  if (aud !== profile.audience) throw new Refused('audience_mismatch');
  const ends = iat + profile.maxPresentationAgeSeconds;
  if (now > ends + profile.clockSkewSeconds) throw new Refused('stale_presentation');
  return ends;
}
