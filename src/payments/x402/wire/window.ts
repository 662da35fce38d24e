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

/** A window that is refused: the reason, and the bound in words. */
export interface WindowFault {
  readonly reason: WindowReason;
  readonly fault: string;
}

/** Why an authorization cannot be used at this time (contract 4.2, step 3), or undefined. */
export function invalidWindow(
  { validAfter, validBefore }: Pick<Eip3009Authorization, 'validAfter' | 'validBefore'>,
  maxTimeoutSeconds: number,
  nowMs: number,
  leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS,
): WindowFault | undefined {
  const now = Math.floor(nowMs / 1_000);
  const begins = now + VALID_AFTER_SKEW_SECONDS;
  if (BigInt(validAfter) > BigInt(begins))
    return {
      reason: 'invalid_exact_evm_payload_authorization_valid_after',
      fault: `validAfter is still to come: it must be at most ${begins}, ${VALID_AFTER_SKEW_SECONDS} s from now`,
    };
  const ends = BigInt(validBefore);
  const mostSeconds = maxTimeoutSeconds + VALID_BEFORE_EXCESS_SECONDS;
  const tooSoon = ends < BigInt(now + leastSeconds);
  if (!tooSoon && ends <= BigInt(now + mostSeconds)) return undefined;
  const how = ends <= BigInt(now) ? 'has passed' : tooSoon ? 'is too near' : 'is too far away';
  return {
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
    fault: `validBefore ${how}: it must be ${now + leastSeconds} to ${now + mostSeconds}, ${leastSeconds} s to ${mostSeconds} s from now`,
  };
}

/** When it is too late to begin, Unix milliseconds, as `tooLate` judges. */
export function tooLateFrom(validBefore: number, leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS): number {
  return (validBefore - leastSeconds + 1) * 1_000;
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
  return reservedAt < tooLateFrom(validBefore, leastSeconds)
    ? undefined
    : 'invalid_exact_evm_payload_authorization_valid_before';
}
