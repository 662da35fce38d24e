import type { MandateClaim, OpenMandateUse } from '../../register/register.ts';
import type { Segment, VerifiedChain } from '../chain/chain.ts';
import type { CheckedCheckout } from '../checkout/checkout.ts';
import type { Allowance } from '../constraints/payment-check.ts';
import type { Ap2Profile } from '../model/profile.ts';
import { Refused } from '../model/reasons.ts';

/**
 * Beyond the last moment that a mandate can be accepted its uses are remembered a while: clocks of replicas differ, and a call that was
 * checked in time may wait before it reserves.
 */
const REMEMBERED_SECONDS = 600;

/** A payment mandate that was found right, with what its open mandates allow, root first. */
export interface PaidUnder {
  readonly chain: VerifiedChain;
  readonly allowances: readonly Allowance[];
}

/**
 * What an accepted presentation uses up (ap2 7.3, ap2 10): its closed mandates and its checkout once, each of its open mandates once or
 * as often as the payment mandate allows. `at`: unix seconds, with their fraction: ages are never less than they are, so that what was made
 * before a register was born does not seem younger.
 */
export function claimOf(
  checkout: VerifiedChain,
  { claims: { jti, exp, signedAt } }: CheckedCheckout,
  paid: PaidUnder | undefined,
  { clockSkewSeconds }: Ap2Profile,
  at: number,
): MandateClaim {
  const closed = paid === undefined ? [checkout.closed.id] : [checkout.closed.id, paid.chain.closed.id];
  // No token stands in both chains: an open payment mandate holds the hash of a checkout segment, so neither can be inside the other.
  const open = [
    ...checkout.open.map((open, index) => useOf(open, sharedAllowance(paid, index), clockSkewSeconds, at)),
    ...(paid?.chain.open ?? []).map((open, index) => useOf(open, paid?.allowances[index], clockSkewSeconds, at)),
  ];
  return {
    at: Math.floor(at),
    age: at - signedAt,
    // One token may close both, as two mandates of which each presentation shows one.
    once: [...new Set(closed.map((id) => `m:${id}`)), `j:${jti}`],
    // The end of the checkout, not the earliest end of all: with other disclosures (issuer_jwt_hash) one closed mandate may stand under
    // open mandates that end at other times, and its checkout ends for all of them.
    onceUntil: exp + clockSkewSeconds + REMEMBERED_SECONDS,
    open,
  };
}

/**
 * An open checkout mandate shares the allowance of the open payment mandate that stands beside it: the root's with the root, the sub-agent's
 * with the sub-agent's, and the last one's where the payment chain is shorter.
 */
function sharedAllowance(paid: PaidUnder | undefined, index: number): Allowance {
  return paid?.allowances[Math.min(index, paid.allowances.length - 1)];
}

function useOf(open: Segment, recurrence: Allowance, skew: number, at: number): OpenMandateUse {
  const ends = [open.claims['exp'], open.mandate?.['exp']].filter((end) => typeof end === 'number');
  // Steps 8 and 10 demand one: without it nothing could ever forget this mandate.
  if (ends.length === 0) throw new Refused('claims_invalid');
  return { id: open.id, age: ageOf(open, at), until: Math.min(...ends) + skew + REMEMBERED_SECONDS, recurrence };
}

/** Since its token was signed. Who signs without a time may say it in what was signed. */
function ageOf({ claims, mandate }: Segment, at: number): number | undefined {
  const made = claims['iat'] ?? mandate?.['iat'];
  return typeof made === 'number' ? at - made : undefined;
}
