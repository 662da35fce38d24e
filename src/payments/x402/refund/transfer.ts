/**
 * The transfer that sends a payment back: an EIP-3009 authorization of the payee, whose nonce
 * follows from the payment. The asset takes each nonce of an account once, so a payment is sent
 * back once, whatever store, operator or process does it.
 */

import { createHash } from 'node:crypto';
import type { PaymentRecord } from '../../ledger/ledger.ts';
import { type Chain, CLOCK_MARGIN_SECONDS, type Evidence, notUsedBefore } from '../chain/chain.ts';
import type { Eip3009Authorization, PaymentRequirements, Proof } from '../wire/types.ts';

/** The fields of a record that decide its refund. */
type RefundTerms = Pick<
  PaymentRecord,
  'payId' | 'asset' | 'payer' | 'payee' | 'units' | 'settledAt' | 'refundTransaction'
>;
type PaymentTerms = Pick<
  PaymentRecord,
  'asset' | 'payer' | 'payee' | 'units' | 'nonce' | 'validBefore' | 'transaction'
>;

/** The longest `maxTimeoutSeconds` of an offer (contract 4.1). */
const LONGEST_TIMEOUT_SECONDS = 3_600;
/** Longest wait for one reading, milliseconds: a node may search its logs for long. */
const READING_DEADLINE_MS = 30_000;

/** Longest wait for one reading while a buyer waits, milliseconds. */
const BUYER_DEADLINE_MS = 3_000;

/** 32 bytes as 0x-hex. */
export function refundNonce(payId: string): string {
  return `0x${createHash('sha256').update(`refund|${payId}`).digest('hex')}`;
}

/** @param validBefore Unix seconds */
export function refundAuthorization(
  { payId, payee, payer, units }: RefundTerms,
  validBefore: number,
): Eip3009Authorization {
  return {
    from: payee,
    to: payer,
    value: units,
    validAfter: '0',
    validBefore: String(validBefore),
    nonce: refundNonce(payId),
  };
}

/** The evidence of the chain for the refund. `open`: its nonce is unspent. Never rejects. */
export function readRefund(
  chain: Chain,
  terms: RefundTerms,
  deadlineMs: number = READING_DEADLINE_MS,
): Promise<Evidence> {
  const { payId, asset, payee, payer, units, settledAt = 0, refundTransaction } = terms;
  const since = Math.floor(settledAt / 1_000) - CLOCK_MARGIN_SECONDS;
  const refund = { asset, from: payee, nonce: refundNonce(payId), payTo: payer, value: units, since };
  // Each run signs the same nonce with a later end, so no end bounds the search.
  const query = { ...refund, validBefore: Number.MAX_SAFE_INTEGER, knownTransaction: refundTransaction };
  return chain.readEvidence(query, deadlineMs);
}

/**
 * Whether a payment was sent back, or can no longer be.
 * @throws Error when the chain does not show it
 */
export async function wasSentBack(
  chain: Chain,
  { payId, payload }: Proof,
  offer: PaymentRequirements,
): Promise<boolean> {
  const { from: payer, value: units, validBefore } = payload.payload.authorization;
  const settledAt = 1_000 * notUsedBefore(Number(validBefore), LONGEST_TIMEOUT_SECONDS);
  const terms = { payId, asset: offer.asset, payer, payee: offer.payTo, units, settledAt };
  const shown = await readRefund(chain, terms, BUYER_DEADLINE_MS);
  if (shown.kind === 'unknown') throw new Error(shown.cause);
  return shown.kind !== 'open';
}

/** The evidence of the chain for the payment itself. Never rejects. */
export function readPayment(chain: Chain, terms: PaymentTerms): Promise<Evidence> {
  const { asset, payer, nonce, payee, units, validBefore, transaction } = terms;
  const since = notUsedBefore(validBefore, LONGEST_TIMEOUT_SECONDS);
  const payment = { asset, from: payer, nonce, payTo: payee, value: units, validBefore, since };
  return chain.readEvidence({ ...payment, knownTransaction: transaction }, READING_DEADLINE_MS);
}
