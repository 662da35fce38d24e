/** Signs receipts for mandates (ap2 13): proof that one was used, or was refused. */

import type { SigningKey } from '../../../crypto/signing-key.ts';
import { type MandateReference, REASONS, type Reason } from '../model/reasons.ts';
import { createCompactSigner } from '../token/jws.ts';

/** The call that a mandate was used for. */
interface OrderFacts {
  readonly orderId: string;
  /** Hash of the transaction that paid for it; undefined for what is free. */
  readonly transaction?: string;
}

/** `issuer`: `iss` of the receipts. The key is that of the checkouts; `typ` tells the two apart. */
export function createReceiptSigner({ issuer, key }: { readonly issuer: string; readonly key: SigningKey }) {
  const signed = createCompactSigner('ap2-receipt+jwt', key);
  const about = ({ reference, referenceSdHash }: MandateReference) => ({
    reference,
    reference_sd_hash: referenceSdHash,
  });
  const head = (nowMs: number) => ({ iss: issuer, iat: Math.floor(nowMs / 1_000) });
  return {
    accepted(mandate: MandateReference, { orderId, transaction }: OrderFacts, nowMs: number): string {
      const paid = transaction === undefined ? {} : { network_confirmation_id: transaction };
      const success = { status: 'Success', result: 'success' };
      return signed({ ...head(nowMs), ...success, ...about(mandate), order_id: orderId, ...paid });
    },
    rejected(mandate: MandateReference, reason: Reason, nowMs: number): string {
      const { ap2Error } = REASONS[reason];
      // AP2 has no error for some reasons: then the description alone names the reason.
      const error = ap2Error === undefined ? {} : { error: ap2Error };
      const failure = { status: 'Error', result: 'error' };
      return signed({ ...head(nowMs), ...failure, ...about(mandate), ...error, error_description: reason });
    },
  };
}
