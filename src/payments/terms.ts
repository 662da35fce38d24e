import { createHash } from 'node:crypto';
import type { Channel } from '../events/event.ts';
import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';
import type { BackendRequest } from '../merchant/types.ts';
import { hintDigest, keyDigest } from './key.ts';
import type { PaymentTerms } from './ledger/ledger.ts';
import type { Offer } from './offers.ts';
import { storedProof } from './recall.ts';
import { paymentReceiptId } from './receipt-id.ts';
import { storedRequest } from './stored-request.ts';
import type { Proof } from './x402/rail.ts';

/** What is fixed about a purchase when its authorization is reserved for the first time. */
export function paymentTerms(
  call: {
    readonly requestId: string;
    readonly channel: Channel;
    readonly resource: { readonly id: string };
    readonly request: BackendRequest;
    readonly input: JsonObject;
    readonly payment: Proof;
    /** The caller's own key, when it brought one. */
    readonly idempotencyKey: string | undefined;
    /** The protocol's own name for the message; a key makes it meaningless. */
    readonly retryHint: string | undefined;
  },
  offer: Offer,
): PaymentTerms {
  const { requestId, channel, resource, request, payment } = call;
  const { authorization } = payment.payload.payload;
  const { requirements, amount, currency } = offer;
  // A second authorization under a known nonce may say anything; the ledger wants a number all the same.
  const validBefore = Math.min(Math.max(Number(authorization.validBefore), 1), Number.MAX_SAFE_INTEGER);
  return {
    payId: payment.payId,
    ...howToAskAgain(payment.payId, call),
    bind: whatIsBought(resource.id, request.method, call.input),
    requestId,
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
  };
}

/** A key rules alone: whoever has one says who may have the answer again, and for how long. */
function howToAskAgain(
  payId: string,
  { idempotencyKey, retryHint }: Record<'idempotencyKey' | 'retryHint', string | undefined>,
): Pick<PaymentTerms, 'keyDigest' | 'hintDigest'> {
  if (idempotencyKey !== undefined) return { keyDigest: keyDigest(payId, idempotencyKey) };
  return retryHint === undefined ? {} : { hintDigest: hintDigest(payId, retryHint) };
}

/** SHA-256 hex over resource, method and the canonical input: equal for every spelling of the same purchase (CONTRACT 4.3). */
function whatIsBought(resourceId: string, method: string, input: JsonObject): string {
  return createHash('sha256')
    .update(`${resourceId}\0${method}\0${canonicalJson(input)}`)
    .digest('hex');
}

/** The key that lets the merchant recognise a repeated request of one purchase; equal on every resume (CONTRACT 4.4). */
export function backendIdempotencyKey(payId: string): string {
  return `pay_${createHash('sha256').update(payId).digest('base64url').slice(0, 43)}`;
}
