import { createHash } from 'node:crypto';
import type { BackendRequest } from '../../backend/exchange.ts';
import { isSealed } from '../../crypto/seal.ts';
import type { PaymentRecord } from '../ledger/ledger.ts';
import type { PaymentPayload, PaymentRequirements, Proof } from '../x402/wire/types.ts';

/**
 * A field of a record is sealed with a key that is not here. Who meets it leaves the record to the
 * chain, its buyer or the operator.
 */
class UnreadableRecord extends Error {
  /** @param field Of the record; never its content. */
  constructor(field: 'proof' | 'backendRequest') {
    super(`${field} is sealed with a key that is not in storage.sealing.keys`);
    this.name = 'UnreadableRecord';
  }
}

/** What a record says was bought and with which authorization. */
interface StoredPurchase {
  readonly proof: Proof;
  readonly requirements: PaymentRequirements;
}

/** What a record keeps of a proof and of the offer it was made for. */
interface StoredProof {
  readonly payload: PaymentPayload;
  readonly signedBy: Proof['signedBy'];
  readonly requirements: PaymentRequirements;
}

/**
 * The proof as a record keeps it, with our own words of the offer: what the buyer echoed of it is
 * not ours.
 */
export function storedProof({ payload, signedBy }: Proof, requirements: PaymentRequirements): string {
  return JSON.stringify({ payload, signedBy, requirements } satisfies StoredProof);
}

/** The same words for the log wherever it is met. */
export const UNREADABLE = 'the stored proof cannot be opened';

/**
 * Why a record cannot be gone on with: what was signed is sealed with a key that is not here.
 * Undefined: it can be read. A record under which nothing was sent may go then: the same proof
 * makes one of its own.
 */
export function unreadable({ proof }: Pick<PaymentRecord, 'proof'>): string | undefined {
  return isSealed(proof) ? UNREADABLE : undefined;
}

/**
 * The purchase as it was fixed at the first reservation. Whatever is brought later under the same
 * replay key (another price since, or a second authorization that the payer signed for the same
 * nonce) does not change what the chain is asked about; and a resource that is no longer sold can
 * still be brought to its end.
 * @throws UnreadableRecord
 */
export function readStoredProof(record: PaymentRecord): StoredPurchase {
  if (unreadable(record) !== undefined) throw new UnreadableRecord('proof');
  // Written by this gateway from a proof that had passed every check.
  const { payload, signedBy, requirements } = JSON.parse(record.proof) as StoredProof;
  const { network, asset, payee, units } = record;
  return {
    proof: { payId: record.payId, payload, signedBy },
    requirements: { ...requirements, network, asset, payTo: payee, amount: units },
  };
}

/**
 * Longest that an offer may be paid, seconds: how far back the chain is searched where the offer
 * itself cannot be read.
 */
const LONGEST_OFFER_SECONDS = 3_600;

/**
 * The same for a question to the chain alone, which asks only for what a record has in clear. Where
 * the proof cannot be read there is no signature in it, so nothing can be sent with it.
 */
export function recallForChain(record: PaymentRecord): StoredPurchase {
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

/**
 * The offer as far as a record has it in clear: what was signed is forgotten when a record is
 * final.
 */
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

/** What a record keeps of the request to the merchant. Body as base64. */
interface StoredRequest {
  readonly method: BackendRequest['method'];
  readonly path: string;
  readonly contentType?: string | undefined;
  readonly body?: string | undefined;
}

/**
 * Configured headers stay out: they may hold the merchant's secrets and are added again from the
 * configuration.
 */
export function storedRequest({ method, path, headers, body }: BackendRequest): string {
  return JSON.stringify({
    method,
    path,
    contentType: headers['content-type'],
    body: body === undefined ? undefined : Buffer.from(body).toString('base64'),
  } satisfies StoredRequest);
}

/**
 * The method of the request that was paid for; undefined: it is sealed with a key that is not here.
 */
export function storedMethod(stored: string): BackendRequest['method'] | undefined {
  return isSealed(stored) ? undefined : readStoredRequest(stored, {}).method;
}

/**
 * The request that was paid for, with the headers that are configured now.
 * @throws UnreadableRecord
 */
export function readStoredRequest(stored: string, configured: Readonly<Record<string, string>>): BackendRequest {
  if (isSealed(stored)) throw new UnreadableRecord('backendRequest');
  // Written by this gateway from a request that it had built.
  const { method, path, contentType, body } = JSON.parse(stored) as StoredRequest;
  return {
    method,
    path,
    headers: { ...configured, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
    body: body === undefined ? undefined : Buffer.from(body, 'base64'),
  };
}

/**
 * What the ledger keeps of a caller's idempotency key (contract 4.4): SHA-256 hex over payId and
 * key. The proof becomes public with its transaction, the key never does, so it alone tells the
 * buyer from an onlooker; therefore it is not kept in clear.
 */
export function keyDigest(payId: string, key: string): string {
  return createHash('sha256').update(`${payId}\0${key}`).digest('hex');
}

/**
 * What the ledger keeps of the token that came with the proof (contract 4.5): SHA-256 hex, never
 * equal to the digest of a key.
 */
export function tokenDigest(payId: string, token: string): string {
  return createHash('sha256').update(`token\0${payId}\0${token}`).digest('hex');
}

/** What tells that two purchases showed one token: SHA-256 hex over the token alone. */
export function tokenId(token: string): string {
  return createHash('sha256').update(`token id\0${token}`).digest('hex');
}
