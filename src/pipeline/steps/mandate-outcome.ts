import { type ErrorDetails, GatewayError } from '../../errors.ts';
import type { JsonObject } from '../../json/types.ts';
import type { Purchase } from '../../mandates/ap2/model/purchase.ts';
import { REASONS, type Reason } from '../../mandates/ap2/model/reasons.ts';
import type { AcceptedMandate, RefusedMandate } from '../../mandates/ap2/model/verdict.ts';
import { ADVICE } from '../../mandates/ap2/verify/advice.ts';
import type { MandateService } from '../../mandates/mandate-service.ts';
import type { ResolvedCall } from '../call.ts';

const METHOD = 'ap2';

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
  const { code, ap2Error } = REASONS[reason];
  if (code === 'AUTHORIZATION_PROVIDER_UNAVAILABLE')
    return new GatewayError(code, {
      message: ADVICE[reason],
      details: { reason },
      headers: { 'retry-after': '1' },
      cause: refused.cause,
    });
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
    message: ADVICE[reason],
    details,
    authorization: JSON.parse(mandates.challenge(purchase)) as JsonObject,
  });
}

/** A mandate that is right and cannot be used now. */
export function usedUp(
  { reference, referenceSdHash, issuer }: AcceptedMandate,
  why: { readonly reason: Reason; readonly cause?: unknown },
): RefusedMandate {
  const { reason, cause } = why;
  return { kind: 'refused', reason, reference: { reference, referenceSdHash }, issuer, cause };
}
