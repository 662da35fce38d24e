/** The terms of a purchase: what the first reservation of an authorization fixes for good. */

import { hash } from 'node:crypto';
import type { BackendRequest } from '../../backend/exchange.ts';
import type { Channel } from '../../events/event.ts';
import { canonicalJson } from '../../json/canonical.ts';
import type { JsonObject } from '../../json/types.ts';
import type { NewToken, PaymentTerms } from '../ledger/ledger.ts';
import { paymentReceiptId } from '../ledger/payment-receipt.ts';
import type { ShownToken } from '../pricing/buyer-token.ts';
import type { Agreed } from '../x402/wire/offers.ts';
import type { Proof } from '../x402/wire/types.ts';
import { keyDigest, storedProof, storedRequest, tokenDigest, tokenId } from './stored-purchase.ts';

/** The terms of one proven call. */
export function paymentTerms(
  call: {
    readonly requestId: string;
    readonly callId: string;
    readonly channel: Channel;
    readonly resource: { readonly id: string };
    readonly request: BackendRequest;
    readonly input: JsonObject;
    readonly payment: Proof;
    /** The caller's own key, if any. */
    readonly idempotencyKey: string | undefined;
    /** The token of a 402 that came back with the proof. */
    readonly token: ShownToken | undefined;
  },
  offer: Agreed,
): Omit<PaymentTerms, 'proofDigest' | 'mandate'> {
  const { requestId, callId, channel, resource, request, payment } = call;
  const { authorization } = payment.payload.payload;
  const { requirements, amount, currency, leastSeconds } = offer;
  // A second authorization under a known nonce may contain anything; the ledger needs a number.
  const validBefore = Math.min(Math.max(Number(authorization.validBefore), 1), Number.MAX_SAFE_INTEGER);
  return {
    payId: payment.payId,
    ...secretsOf(payment.payId, call),
    bind: whatIsBought(resource.id, request, call.input),
    requestId,
    callId,
    resourceId: resource.id,
    channel,
    receiptId: paymentReceiptId(payment.payId, validBefore, requirements.maxTimeoutSeconds),
    payer: authorization.from,
    payee: requirements.payTo,
    asset: requirements.asset,
    network: requirements.network,
    units: requirements.amount,
    amount,
    currency,
    nonce: authorization.nonce,
    validBefore,
    proof: storedProof(payment, requirements),
    backendRequest: storedRequest(request),
    ...(leastSeconds === undefined ? {} : { settle: 'after' }),
  };
}

/** What only the buyer has beside the public proof. */
interface Secrets {
  readonly idempotencyKey: string | undefined;
  readonly token: ShownToken | undefined;
}

/** Both, when both came: the record may have been made with either. */
function secretsOf(payId: string, { idempotencyKey, token }: Secrets): Pick<PaymentTerms, 'keyDigest' | 'tokenDigest'> {
  return {
    ...(idempotencyKey === undefined ? {} : { keyDigest: keyDigest(payId, idempotencyKey) }),
    ...(token === undefined ? {} : { tokenDigest: tokenDigest(payId, token.text) }),
  };
}

/** Whether the token of a call may become the secret of a new record; undefined when none came. */
export function newToken({ token }: Pick<Secrets, 'token'>): NewToken | undefined {
  if (token === undefined) return undefined;
  return token.genuineForMs > 0
    ? { kind: 'issued', id: tokenId(token.text), forMs: token.genuineForMs }
    : { kind: 'worthless' };
}

/**
 * `bind`: SHA-256 hex over resource, method and canonical input (contract 4.3), and over the
 * headers that the caller brought: an answer that was made for one cookie is never another's.
 */
export function whatIsBought(
  resourceId: string,
  { method, callerHeaders = {} }: Pick<BackendRequest, 'method' | 'callerHeaders'>,
  input: JsonObject,
): string {
  const brought = Object.keys(callerHeaders).length === 0 ? '' : `\0${canonicalJson(callerHeaders)}`;
  return hash('sha256', `${resourceId}\0${method}\0${canonicalJson(input)}${brought}`, 'hex');
}

/** SHA-256 hex over the RFC 8785 form of an input: what was asked, for readers who have it. */
export function inputDigest(input: JsonObject): string {
  return hash('sha256', canonicalJson(input), 'hex');
}

/** The key by which the backend knows a repeated request, equal on each resume (contract 4.4). */
export function backendIdempotencyKey(payId: string): string {
  return `pay_${hash('sha256', payId, 'base64url').slice(0, 43)}`;
}
