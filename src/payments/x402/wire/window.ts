/** The window of an authorization: checked when a proof comes, and before its settlement. */

import type { PaymentRecord } from '../../ledger/ledger.ts';
import type { Eip3009Authorization } from './types.ts';

/** How far `validAfter` may lie in the future: clocks differ, and the chain's lags. */
export const VALID_AFTER_SKEW_SECONDS = 5;
/** What must be left before `validBefore` when a proof comes: time to reach a block. */
export const VALID_BEFORE_MARGIN_SECONDS = 6;
/** What must be left when a call has its answer before its payment: time to settle it. */
const SETTLEMENT_SECONDS = 70;
/** How much longer than offered an authorization may live: this bounds the use of a stolen one. */
export const VALID_BEFORE_EXCESS_SECONDS = 600;

export type WindowReason =
  | 'invalid_exact_evm_payload_authorization_valid_after'
  | 'invalid_exact_evm_payload_authorization_valid_before';

/** What must be left of a window where the backend answers first, within `timeoutMs`; seconds. */
export function leastSecondsToPay(timeoutMs: number): number {
  return Math.ceil(timeoutMs / 1_000) + SETTLEMENT_SECONDS;
}

/** Why an authorization cannot be used at this time (contract 4.2, step 3), or undefined. */
export function invalidWindow(
  { validAfter, validBefore }: Pick<Eip3009Authorization, 'validAfter' | 'validBefore'>,
  maxTimeoutSeconds: number,
  nowMs: number,
  leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS,
): WindowReason | undefined {
  const now = Math.floor(nowMs / 1_000);
  if (BigInt(validAfter) > BigInt(now + VALID_AFTER_SKEW_SECONDS))
    return 'invalid_exact_evm_payload_authorization_valid_after';
  const ends = BigInt(validBefore);
  const tooSoon = ends < BigInt(now + leastSeconds);
  const tooLate = ends > BigInt(now + maxTimeoutSeconds + VALID_BEFORE_EXCESS_SECONDS);
  return tooSoon || tooLate ? 'invalid_exact_evm_payload_authorization_valid_before' : undefined;
}

/**
 * The window again, on the clock that all processes share. Another process may have answered a copy
 * of this proof with a challenge, so a late attempt must not begin after its end. `leastSeconds`:
 * as of the checks of that copy.
 */
export function tooLate(
  { reservedAt, validBefore }: Pick<PaymentRecord, 'reservedAt' | 'validBefore'>,
  leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS,
): WindowReason | undefined {
  const inTime = Math.floor(reservedAt / 1_000) + leastSeconds <= validBefore;
  return inTime ? undefined : 'invalid_exact_evm_payload_authorization_valid_before';
}
