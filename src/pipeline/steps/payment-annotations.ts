import type { FundedCall, PaymentAnnotations } from '../call.ts';

/** What every answer to a call that may reach the merchant says of its payment and of its mandate. */
export function annotationsOfFunded({
  funding,
  authorization,
}: Pick<FundedCall, 'funding' | 'authorization'>): PaymentAnnotations {
  return {
    ...(funding.kind === 'paid' ? { payment: funding.response } : {}),
    ...(authorization?.receipt === undefined ? {} : { mandateReceipt: authorization.receipt }),
  };
}
