/** The name that a caller gives a payment (contract 4.4). */

import { GatewayError } from '../../errors.ts';
import type { PreparedCall } from '../call.ts';

/** 1 to 255 printable ASCII characters. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * The one key of a paid call: the header's, or the payment-identifier of its proof.
 * @throws GatewayError INPUT_INVALID
 */
export function oneKey(header: PreparedCall['idempotencyKey'], identifier: string | undefined): string | undefined {
  if (header === undefined) return identifier;
  if (typeof header !== 'string' || !KEY.test(header))
    throw refused(
      'idempotency_key_malformed',
      'Idempotency-Key must come once, with 1 to 255 printable ASCII characters.',
    );
  if (identifier !== undefined && identifier !== header)
    throw refused('idempotency_keys_differ', 'Idempotency-Key and the payment-identifier of the proof must be equal.');
  return header;
}

function refused(reason: string, message: string): GatewayError {
  return new GatewayError('INPUT_INVALID', { message, details: { reason } });
}
