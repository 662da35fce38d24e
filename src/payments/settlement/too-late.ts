import type { PaymentRecord } from '../ledger/ledger.ts';
import { VALID_BEFORE_MARGIN_SECONDS, type WindowReason } from '../x402/wire/window.ts';

/**
 * The window once more, on the clock that all processes share: a copy of this proof may have been told that its time is over and that
 * a new one is wanted, so an attempt that was slow to come here must not begin after that.
 */
export function tooLate({
  reservedAt,
  validBefore,
}: Pick<PaymentRecord, 'reservedAt' | 'validBefore'>): WindowReason | undefined {
  const inTime = Math.floor(reservedAt / 1_000) + VALID_BEFORE_MARGIN_SECONDS <= validBefore;
  return inTime ? undefined : 'invalid_exact_evm_payload_authorization_valid_before';
}
