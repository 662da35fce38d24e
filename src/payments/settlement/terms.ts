/**
 * The terms of a purchase: the facts that the first reservation of an authorization fixes. Also
 * reads the proof and the backend request again, which a record keeps as text.
 */

import { createHash, hash } from 'node:crypto';
import type { BackendRequest } from '../../backend/backend-exchange.ts';
import type { BackendHeaderFacts } from '../../backend/header-policy.ts';
import { isSealed } from '../../crypto/seal.ts';
import type { Channel } from '../../events/event.ts';
import type { JsonObject } from '../../json/json.ts';
import { canonicalJson } from '../../json/json.ts';
import type { NewToken, PaymentRecord, PaymentTerms } from '../ledger/ledger.ts';
import { paymentReceiptId } from '../ledger/payment-receipt.ts';
import type { ShownToken } from '../pricing/buyer-token.ts';
import type { Agreed } from '../x402/wire/offers.ts';
import type { PaymentPayload, PaymentRequirements, Proof } from '../x402/wire/types.ts';

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

/** Secrets that only the buyer has, beside the public proof. */
interface Secrets {
  readonly idempotencyKey: string | undefined;
  readonly token: ShownToken | undefined;
}

/** Digests of both secrets when both came: the record may have been made with either. */
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

/** SHA-256 hex over the RFC 8785 form of an input: a reader who has the input can compare. */
export function inputDigest(input: JsonObject): string {
  return hash('sha256', canonicalJson(input), 'hex');
}

/** The key by which the backend knows a repeated request, equal on each resume (contract 4.4). */
export function backendIdempotencyKey(payId: string): string {
  return `pay_${hash('sha256', payId, 'base64url').slice(0, 43)}`;
}

/** A JWT about a payment, for the call of the backend in this request; undefined: none is made. */
export type PaymentContext = (record: PaymentRecord, requestId: string) => string | undefined;

/** The facts about the payment of a request that the backend gets in headers. */
export function toldOfPayment(
  record: PaymentRecord,
  requestId: string,
  contextOf: PaymentContext | undefined,
): Pick<BackendHeaderFacts, 'payer' | 'receiptId' | 'idempotencyKey' | 'paymentContext'> {
  const { payId, payer, receiptId } = record;
  const paymentContext = contextOf?.(record, requestId);
  return { payer, receiptId, idempotencyKey: backendIdempotencyKey(payId), paymentContext };
}

/** A sealed field without its key: the record is left to the chain, its buyer or the operator. */
class UnreadableRecord extends Error {
  /** @param field of the record; never its content */
  constructor(field: 'proof' | 'backendRequest') {
    super(`${field} is sealed with a key that is not in storage.sealing.keys`);
    this.name = 'UnreadableRecord';
  }
}

/** The offer that was bought, and the proof that bought it. */
export interface StoredPurchase {
  readonly proof: Proof;
  readonly requirements: PaymentRequirements;
}

/** The stored form of a proof and of the offer that it was made for. */
interface StoredProof {
  readonly payload: PaymentPayload;
  readonly signedBy: Proof['signedBy'];
  readonly requirements: PaymentRequirements;
}

/** The proof as a record keeps it: it has the gateway's own offer beside the buyer's echo. */
export function storedProof({ payload, signedBy }: Proof, requirements: PaymentRequirements): string {
  return JSON.stringify({ payload, signedBy, requirements } satisfies StoredProof);
}

/** The cause in log lines about a record whose proof is sealed with a key that is not here. */
export const UNREADABLE = 'the stored proof cannot be opened';

/**
 * The reason if the key of a record's sealed proof is not here, so that an attempt cannot go on;
 * undefined: the proof is readable. An unreadable record of which nothing was sent may be deleted:
 * the same proof makes a new one.
 */
export function unreadable({ proof }: Pick<PaymentRecord, 'proof'>): string | undefined {
  return isSealed(proof) ? UNREADABLE : undefined;
}

/**
 * The purchase as it was fixed at the first reservation. A later call under the same replay key
 * (another price, or a second authorization for the same nonce) does not change the question to the
 * chain; and the payment for a removed resource can still be finished.
 * @throws UnreadableRecord
 */
export function readStoredProof(record: PaymentTerms): StoredPurchase {
  if (unreadable(record) !== undefined) throw new UnreadableRecord('proof');
  // Written by `storedProof` from a proof that had passed every check.
  const { payload, signedBy, requirements } = JSON.parse(record.proof) as StoredProof;
  const { network, asset, payee, units } = record;
  return {
    proof: { payId: record.payId, payload, signedBy },
    requirements: { ...requirements, network, asset, payTo: payee, amount: units },
  };
}

/** Longest offer, seconds: how far back the chain is searched where the offer is unreadable. */
const LONGEST_OFFER_SECONDS = 3_600;

/**
 * Reads a purchase for a question to the chain, which needs only the fields in clear. Where the
 * proof is unreadable the result has no signature, so nothing can be sent with it.
 */
export function readForChain(record: PaymentRecord): StoredPurchase {
  if (unreadable(record) === undefined) return readStoredProof(record);
  const { payId, payer, payee, units, nonce, validBefore } = record;
  const authorization = {
    from: payer,
    to: payee,
    value: units,
    validAfter: '0',
    validBefore: String(validBefore),
    nonce,
  };
  const requirements = clearRequirements(record);
  const payload: PaymentPayload = {
    x402Version: 2,
    accepted: requirements,
    payload: { signature: '0x', authorization },
  };
  return { proof: { payId, payload, signedBy: 'contract' }, requirements };
}

/** The offer as far as a record has it in clear; a final record has forgotten the proof. */
export function clearRequirements({ network, asset, payee, units }: PaymentRecord): PaymentRequirements {
  return {
    scheme: 'exact',
    network,
    asset,
    payTo: payee,
    amount: units,
    maxTimeoutSeconds: LONGEST_OFFER_SECONDS,
    extra: {},
  };
}

/** The stored form of a backend request, its body as base64. */
interface StoredRequest {
  readonly method: BackendRequest['method'];
  readonly path: string;
  readonly contentType?: string | undefined;
  /** Absent where the call brought none. */
  readonly callerHeaders?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
}

/** Leaves out configured headers: they may hold secrets, and the reader adds them again. */
export function storedRequest({ method, path, headers, callerHeaders, body }: BackendRequest): string {
  return JSON.stringify({
    method,
    path,
    contentType: headers['content-type'],
    callerHeaders: isBrought(callerHeaders) ? callerHeaders : undefined,
    body: body === undefined ? undefined : Buffer.from(body).toString('base64'),
  } satisfies StoredRequest);
}

function isBrought(callerHeaders: BackendRequest['callerHeaders']): boolean {
  return callerHeaders !== undefined && Object.keys(callerHeaders).length > 0;
}

/** The method of the paid request; undefined: sealed with a key that is not here. */
export function storedMethod(stored: string): BackendRequest['method'] | undefined {
  return isSealed(stored) ? undefined : readStoredRequest(stored, {}).method;
}

/** The paid request, with the headers that are configured now. @throws UnreadableRecord */
export function readStoredRequest(stored: string, configured: Readonly<Record<string, string>>): BackendRequest {
  if (isSealed(stored)) throw new UnreadableRecord('backendRequest');
  // Written by `storedRequest`.
  const { method, path, contentType, callerHeaders, body } = JSON.parse(stored) as StoredRequest;
  return {
    method,
    path,
    headers: { ...configured, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
    ...(callerHeaders === undefined ? {} : { callerHeaders }),
    body: body === undefined ? undefined : Buffer.from(body, 'base64'),
  };
}

/**
 * The ledger's form of a caller's idempotency key (contract 4.4): SHA-256 hex over payId and key.
 * The proof becomes public with its transaction and the key does not, so the key tells the buyer
 * from an onlooker; therefore it is not kept in clear.
 */
export function keyDigest(payId: string, key: string): string {
  return createHash('sha256').update(`${payId}\0${key}`).digest('hex');
}

/** The ledger's form of a token (contract 4.5), never equal to the digest of a key. */
export function tokenDigest(payId: string, token: string): string {
  return createHash('sha256').update(`token\0${payId}\0${token}`).digest('hex');
}

/** A name that two purchases with one token share: SHA-256 hex over the token alone. */
export function tokenId(token: string): string {
  return createHash('sha256').update(`token id\0${token}`).digest('hex');
}
