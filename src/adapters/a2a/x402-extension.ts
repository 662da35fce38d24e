/** Metadata of messages about payments: the keys of the x402 extension of A2A (a2a-x402 v0.2). */

import type { GatewayError } from '../../errors.ts';
import type { Challenge } from '../../payments/x402/wire/challenge.ts';
import { paymentResponseDocument } from '../../payments/x402/wire/payment-response.ts';
import { NONCE_ALREADY_USED } from '../../payments/x402/wire/reasons.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';
import type { Members } from '../json-rpc/metadata.ts';

/** Members of a message's metadata. */
const PAYMENT_STATUS = 'x402.payment.status';
export const PAYMENT_PAYLOAD = 'x402.payment.payload';
const PAYMENT_REQUIRED = 'x402.payment.required';
const PAYMENT_RECEIPTS = 'x402.payment.receipts';
const PAYMENT_ERROR = 'x402.payment.error';

/** Error codes of the extension (a2a-x402 v0.2, section 9). */
type PaymentError =
  | 'INSUFFICIENT_FUNDS'
  | 'INVALID_SIGNATURE'
  | 'EXPIRED_PAYMENT'
  | 'DUPLICATE_NONCE'
  | 'NETWORK_MISMATCH'
  | 'INVALID_AMOUNT'
  | 'SETTLEMENT_FAILED';

/** The code for each reason of the gateway (contract 1.3) that has one. */
const ERRORS: ReadonlyMap<string, PaymentError> = new Map([
  ['insufficient_funds', 'INSUFFICIENT_FUNDS'],
  ['invalid_payload', 'INVALID_SIGNATURE'],
  ['invalid_exact_evm_payload_signature', 'INVALID_SIGNATURE'],
  ['contract_signature_not_supported', 'INVALID_SIGNATURE'],
  ['eip6492_factory_not_allowed', 'INVALID_SIGNATURE'],
  ['test_payer_not_allowed', 'INVALID_SIGNATURE'],
  ['invalid_exact_evm_payload_authorization_valid_after', 'EXPIRED_PAYMENT'],
  ['invalid_exact_evm_payload_authorization_valid_before', 'EXPIRED_PAYMENT'],
  [NONCE_ALREADY_USED, 'DUPLICATE_NONCE'],
  ['invalid_network', 'NETWORK_MISMATCH'],
  ['invalid_scheme', 'NETWORK_MISMATCH'],
  ['invalid_payment_requirements', 'INVALID_AMOUNT'],
  ['invalid_exact_evm_payload_authorization_value_mismatch', 'INVALID_AMOUNT'],
  ['invalid_exact_evm_payload_recipient_mismatch', 'INVALID_AMOUNT'],
]);

/** Metadata of a message that asks for a payment, or for another one after a refusal. */
export function challengeMembers({ document, refusal }: Challenge, payment: PaymentResponse | undefined): Members {
  const required = { [PAYMENT_REQUIRED]: document };
  if (refusal === undefined) return { ...status('payment-required'), ...required };
  // The extension demands a code. Only a failed settlement may claim that something was sent.
  const unnamed = refusal.code === 'PAYMENT_SETTLEMENT_FAILED' ? 'SETTLEMENT_FAILED' : 'INVALID_SIGNATURE';
  return { ...failed(ERRORS.get(refusal.reason) ?? unnamed), ...required, ...receipts(payment) };
}

/** Metadata of a message about money that moved, or that may have moved; empty for a free call. */
export function paymentMembers(payment: PaymentResponse | undefined): Members {
  if (payment === undefined) return {};
  if (payment.status === 'pending') return status('payment-submitted');
  return payment.success
    ? { ...status('payment-completed'), ...receipts(payment) }
    : { ...failed('SETTLEMENT_FAILED'), ...receipts(payment) };
}

/**
 * Metadata of a message about a call that failed. It never has `payment-required`: a client would
 * sign a second payment while the first may still pay.
 */
export function failureMembers(error: GatewayError, payment: PaymentResponse | undefined): Members {
  if (payment !== undefined) return paymentMembers(payment);
  if (error.code !== 'PAYMENT_REPLAYED') return {};
  const state = error.details?.state;
  if (state === 'in_flight') return status('payment-submitted');
  // A payment of this purchase stays completed, however the purchase ended: a client signs a failed
  // one again. Only a payment of another call has failed here.
  return { ...failed('DUPLICATE_NONCE'), ...(state === 'used' ? {} : status('payment-completed')) };
}

function status(word: string): Members {
  return { [PAYMENT_STATUS]: JSON.stringify(word) };
}

function failed(code: PaymentError): Members {
  return { ...status('payment-failed'), [PAYMENT_ERROR]: JSON.stringify(code) };
}

function receipts(payment: PaymentResponse | undefined): Members {
  return payment === undefined ? {} : { [PAYMENT_RECEIPTS]: JSON.stringify([paymentResponseDocument(payment)]) };
}
