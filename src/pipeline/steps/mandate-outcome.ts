/**
 * What became of a mandate check, as events of the call and as its errors: `authorize` uses it
 * before the settlement, `payment-mandate.ts` after it.
 */

import { type ErrorDetails, GatewayError } from '../../errors.ts';
import type { Journal } from '../../events/journal.ts';
import type { JsonObject } from '../../json/types.ts';
import type { Purchase } from '../../mandates/ap2/purchase.ts';
import { type AcceptedMandate, REASONS, type Reason, type RefusedMandate } from '../../mandates/ap2/reasons.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import type { StoredMandate } from '../../mandates/stored-mandate.ts';
import type { ResolvedCall, UsedMandate } from '../call.ts';

const METHOD = 'ap2';

/** Records an accepted mandate in the call's journal, by its ids alone (ap2 12). */
export function recordVerified(journal: Journal, { mode, issuer, mandateId, reference }: AcceptedMandate): void {
  journal.record('authorization.verified', {
    status: 'ok',
    data: { method: METHOD, mode, issuer, mandateId, reference },
  });
}

/** What the gateway's own receipt states about a mandate. */
export function mandateSummary({
  reference,
  mandateIssuer,
  checkoutIssuer,
  checkoutId,
}: Pick<StoredMandate, 'reference' | 'mandateIssuer' | 'checkoutIssuer' | 'checkoutId'>): UsedMandate['summary'] {
  return { method: METHOD, reference, metadata: { mandateIssuer, checkoutIssuer, checkoutId } };
}

/**
 * The answer to a refused mandate: the error of the reason (ap2 8), a signed receipt of the refusal
 * (ap2 13), and a fresh checkout for the next mandate. Records the refusal in the call's journal.
 */
export function unauthorized(
  call: Pick<ResolvedCall, 'journal'>,
  mandates: MandateService,
  purchase: Purchase,
  refused: Omit<RefusedMandate, 'kind'>,
): GatewayError {
  const { reason, issuer, reference, mandate, constraint } = refused;
  const { code, ap2Error, advice } = REASONS[reason];
  if (code === 'AUTHORIZATION_PROVIDER_UNAVAILABLE')
    return new GatewayError(code, { message: advice, details: { reason }, cause: refused.cause });
  const missing = code === 'AUTHORIZATION_REQUIRED';
  call.journal.record('authorization.rejected', {
    status: 'error',
    data: {
      method: METHOD,
      reason,
      ...(missing ? { methods: [METHOD] } : {}),
      ...(issuer === undefined ? {} : { issuer }),
    },
  });
  const receipt =
    reference === undefined || ap2Error === undefined ? {} : { receipt: mandates.rejected(reference, reason) };
  const details: ErrorDetails = {
    reason,
    ...(missing ? { required: [METHOD], missing: [METHOD] } : {}),
    ...(mandate === undefined ? {} : { mandate }),
    ...(constraint === undefined ? {} : { constraint }),
    ...receipt,
  };
  return new GatewayError(code, {
    message: advice,
    details,
    authorization: JSON.parse(mandates.challenge(purchase)) as JsonObject,
  });
}

/** A mandate that is right and cannot be used now. */
export function usedUp(
  { reference, referenceSdHash, issuer }: AcceptedMandate,
  { reason, cause }: { readonly reason: Reason; readonly cause?: unknown },
): RefusedMandate {
  return { kind: 'refused', reason, reference: { reference, referenceSdHash }, issuer, cause };
}
