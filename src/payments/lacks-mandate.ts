import type { PaymentRecord, PaymentTerms } from './ledger/ledger.ts';

/**
 * Whoever left this reservation behind had no mandate to bring, and this call has one. Going on with it would settle a payment that uses
 * no mandate up: it has to begin anew.
 */
export function lacksMandate(
  reserved: Pick<PaymentRecord, 'mandate'>,
  brought: Pick<PaymentTerms, 'mandate'>,
): boolean {
  return reserved.mandate === undefined && brought.mandate !== undefined;
}
