import { readStoredMandate } from '../../mandates/stored-mandate.ts';
import type { PaymentRecord, PaymentTerms } from '../ledger/ledger.ts';

/**
 * Whether whoever left this reservation behind had no mandate, or not the one that this call has. Going on with it would settle a payment
 * under something that nobody has checked for this call, and use nothing of what was checked: it has to begin anew.
 */
export function isUnderOtherMandate(
  reserved: Pick<PaymentRecord, 'mandate'>,
  brought: Pick<PaymentTerms, 'mandate'>,
): boolean {
  // One mandate that was checked twice is stored with two times.
  return brought.mandate !== undefined && identityOf(reserved.mandate) !== identityOf(brought.mandate);
}

/** What of a mandate may be used once, its closed mandates and its checkout; and what it stands under. */
function identityOf(mandate: string | undefined): string | undefined {
  const claim = mandate === undefined ? undefined : readStoredMandate(mandate)?.claim;
  return claim && JSON.stringify([claim.once, claim.open.map(({ id }) => id)]);
}
