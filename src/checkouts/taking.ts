import type { Time } from '../time/time.ts';
import type { CheckoutClaims, Claim, Claimed } from './claims.ts';
import type { ClaimOutcome, ClaimWatch } from './idempotency.ts';
import { STORE_COMMAND_TIMEOUT_MS } from './lease.ts';

/** What a claim came to. `sentAt`: of the monotonic clock; a lease that it began runs from no earlier moment. */
export type Taken =
  | { readonly kind: 'claimed'; readonly claimed: Claimed; readonly sentAt: number }
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** Long enough for a connection that broke to be back, milliseconds. */
const PAUSE_MS = 200;

/**
 * Claims. A command whose reply was lost goes out once more while the time of one command lasts: its owner is recognised, so it does no
 * harm. Never rejects.
 */
export async function take(
  { claims, time }: { readonly claims: CheckoutClaims; readonly time: Time },
  claim: Claim,
): Promise<Taken> {
  const began = time.now();
  const first = await send(claims, claim, began);
  if (first.kind === 'claimed' || time.now() + PAUSE_MS - began >= STORE_COMMAND_TIMEOUT_MS) return first;
  await time.sleep(PAUSE_MS);
  return send(claims, claim, time.now());
}

async function send(claims: CheckoutClaims, claim: Claim, sentAt: number): Promise<Taken> {
  try {
    return { kind: 'claimed', claimed: await claims.claim(claim), sentAt };
  } catch (cause) {
    return { kind: 'unavailable', cause };
  }
}

/** Tells the watch what a call was met with. */
export function tell(watch: ClaimWatch, taken: Taken): void {
  const outcome: ClaimOutcome = taken.kind === 'claimed' ? taken.claimed.kind : taken.kind;
  watch.claimed(outcome);
  if (taken.kind === 'claimed' && taken.claimed.kind === 'again' && taken.claimed.why === 'lease_expired')
    watch.leaseExpired();
}
