/**
 * Finds what a call has paid for under an earlier configuration; pipeline/steps/collecting.ts turns
 * the call into one that collects it.
 */

import type { BackendRequest } from '../../backend/exchange.ts';
import { isSealed } from '../../crypto/seal.ts';
import type { JsonObject } from '../../json/types.ts';
import type { PaymentLedger, PaymentRecord, PaymentState } from '../ledger/ledger.ts';
import { FORGOTTEN_IN, opens } from '../ledger/table.ts';
import { tokenText } from '../pricing/buyer-token.ts';
import { isProofOf } from '../x402/verify/verify.ts';
import { decodeProof } from '../x402/wire/header-codec.ts';
import type { Agreed } from '../x402/wire/offers.ts';
import { replayKeys } from '../x402/wire/payload-schema.ts';
import { invokeUrl } from '../x402/wire/payment-required.ts';
import type { PaymentRequirements, Proof } from '../x402/wire/types.ts';
import {
  clearRequirements,
  keyDigest,
  readStoredProof,
  readStoredRequest,
  tokenDigest,
  unreadable,
} from './stored-purchase.ts';
import { whatIsBought } from './terms.ts';
import type { CarriedProof } from './verifier.ts';

/** A call that today's configuration does not serve. */
interface Unserved {
  readonly resourceId: string;
  /** Without the reserved names. */
  readonly input: JsonObject;
  /** Part of what was bought, as the input is. */
  readonly callerHeaders?: BackendRequest['callerHeaders'];
  readonly proof: CarriedProof;
  /** The caller's `Idempotency-Key`, as far as it can be read. */
  readonly idempotencyKey: string | undefined;
  /** Also what is not paid: the call is served today, and may pay. */
  readonly unpaid?: boolean;
}

/** What such a call has paid for. */
interface EarlierPurchase {
  readonly record: PaymentRecord;
  /** As it was built when it was paid, without the configured headers. */
  readonly request: BackendRequest;
  /** The terms of the payment. */
  readonly agreed: Agreed;
}

/** The methods that `bind` may contain: a final record has no other trace of its method. */
const METHODS: readonly BackendRequest['method'][] = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'];

/** Undefined: there is nothing that this call may collect. @throws StoreError */
export type FindEarlier = (call: Unserved) => Promise<EarlierPurchase | undefined>;

/** What replay keys and addresses of resources are made of. */
interface EarlierScope {
  readonly chainId: number;
  readonly asset: string;
  readonly publicBaseUrl: string;
}

/** States in which nothing was taken. In the others money has moved or may have. */
const UNPAID: readonly PaymentState[] = ['reserved', 'worked', 'withdrawn', 'refused'];

/**
 * Finds by replay key, and only for exactly what was bought and with the buyer's secret: for every
 * other call there is no such purchase. The signature is not checked here, so nothing of the
 * purchase is shown before `verify`.
 */
export function createFindEarlier(
  ledger: Pick<PaymentLedger, 'read'>,
  { chainId, asset, publicBaseUrl }: EarlierScope,
): FindEarlier {
  return async ({ resourceId, input, callerHeaders = {}, proof, idempotencyKey, unpaid = false }) => {
    const { record } = (await openedBy(ledger, { chainId, asset }, { proof, idempotencyKey })) ?? {};
    if (record?.resourceId !== resourceId || (!unpaid && UNPAID.includes(record.state))) return undefined;
    const method = METHODS.find(
      (one) => whatIsBought(resourceId, { method: one, callerHeaders }, input) === record.bind,
    );
    const kept = method === undefined ? undefined : keptOf(record, method);
    if (kept === undefined) return undefined;
    const { request, requirements } = kept;
    const { amount, currency } = record;
    const resourceUrl = invokeUrl(publicBaseUrl, resourceId);
    return { record, request, agreed: { requirements, resourceUrl, amount, currency } };
  };
}

/**
 * The record of a proof that its buyer's secret opens, whatever its signature; undefined: none.
 * @throws StoreError
 */
async function openedBy(
  ledger: Pick<PaymentLedger, 'read'>,
  { chainId, asset }: Pick<EarlierScope, 'chainId' | 'asset'>,
  { proof, idempotencyKey }: Pick<Unserved, 'proof' | 'idempotencyKey'>,
): Promise<{ readonly record: PaymentRecord; readonly proof: Pick<Proof, 'payId' | 'payload'> } | undefined> {
  const decoded = proof.kind === 'header' ? decodeProof(proof.value) : undefined;
  if (decoded?.kind !== 'decoded') return undefined;
  let record: PaymentRecord | undefined;
  for (const payId of replayKeys(decoded.payload, { chainId, asset })) record ??= await ledger.read(payId);
  if (record === undefined) return undefined;
  const { payId } = record;
  const key = idempotencyKey ?? decoded.paymentIdentifier;
  const token = decoded.buyerToken === undefined ? undefined : tokenText(decoded.buyerToken);
  const secrets = {
    ...(key === undefined ? {} : { keyDigest: keyDigest(payId, key) }),
    ...(token === undefined ? {} : { tokenDigest: tokenDigest(payId, token) }),
  };
  if (!opens(record, secrets)) return undefined;
  return { record, proof: { payId, payload: decoded.payload } };
}

/** A purchase that its buyer asks about. */
interface OwnPurchase extends Pick<Unserved, 'proof' | 'idempotencyKey'> {
  readonly receiptId: string;
}

/** Undefined: no purchase of that id is this caller's. @throws StoreError */
export type FindOwn = (asked: OwnPurchase) => Promise<PaymentRecord | undefined>;

/**
 * Finds the purchase of a proof for the buyer alone: the proof is public, so one that was bought
 * without a secret is shown to no caller. The signature must be the one that paid, which is
 * compared and not verified, so a wallet that is a contract need not be asked. Every failure looks
 * alike.
 */
export function createFindOwn(
  ledger: Pick<PaymentLedger, 'read'>,
  scope: Pick<EarlierScope, 'chainId' | 'asset'>,
): FindOwn {
  return async ({ receiptId, proof, idempotencyKey }) => {
    const opened = await openedBy(ledger, scope, { proof, idempotencyKey });
    const { record } = opened ?? {};
    if (opened === undefined || record?.receiptId !== receiptId || UNPAID.includes(record.state)) return undefined;
    if (!isProofOf(record.proofDigest, opened.proof)) return undefined;
    return record.keyDigest === undefined && record.tokenDigest === undefined ? undefined : record;
  };
}

/** Undefined: it is sealed with a key that this process does not have. */
function keptOf(
  record: PaymentRecord,
  method: BackendRequest['method'],
): { readonly request: BackendRequest; readonly requirements: PaymentRequirements } | undefined {
  // Such a record never leads to the backend again, so there is nothing to send.
  if (FORGOTTEN_IN[record.state]?.['backendRequest'] !== undefined)
    return {
      request: { method, path: '/', headers: {}, body: undefined },
      requirements: clearRequirements(record),
    };
  if (unreadable(record) !== undefined || isSealed(record.backendRequest)) return undefined;
  return { request: readStoredRequest(record.backendRequest, {}), requirements: readStoredProof(record).requirements };
}
