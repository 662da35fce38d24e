/**
 * Finds the payment that a proof was used for: the only question to the ledger about a proof that
 * would be refused (pipeline/collecting.ts).
 */

import type { BackendRequest } from '../../backend/backend-exchange.ts';
import { isSealed } from '../../crypto/seal.ts';
import type { JsonObject } from '../../json/json.ts';
import type { PaymentLedger, PaymentRecord, PaymentState } from '../ledger/ledger.ts';
import { FORGOTTEN_IN, opens } from '../ledger/table.ts';
import { type ReadToken, tokenText } from '../pricing/buyer-token.ts';
import { type Candidate, isProofOf } from '../x402/verify/verify.ts';
import { invokeUrl } from '../x402/wire/challenge.ts';
import type { Agreed } from '../x402/wire/offers.ts';
import { decodeProof, replayKeys } from '../x402/wire/proof.ts';
import type { NoRecord } from './safe-to-rechallenge.ts';
import {
  clearRequirements,
  keyDigest,
  readStoredProof,
  readStoredRequest,
  tokenDigest,
  unreadable,
  whatIsBought,
} from './terms.ts';
import type { CarriedProof } from './verifier.ts';

/** The parts of a payment that a caller shows. */
interface Shown {
  readonly proof: CarriedProof;
  /** The caller's `Idempotency-Key`, as far as it can be read. */
  readonly idempotencyKey: string | undefined;
}

/** A call that would be refused. */
interface Refused extends Shown {
  readonly resourceId: string;
  /** Without the reserved names. */
  readonly input: JsonObject;
  /** Part of the purchase, as the input is. */
  readonly callerHeaders?: BackendRequest['callerHeaders'];
}

/** A payment whose record has the replay key of a proof, which proves nothing about the caller. */
export interface KnownPayment {
  readonly kind: 'known';
  readonly record: PaymentRecord;
  /** As it was sent, its signature unchecked. */
  readonly proof: Candidate['decoded'];
  /** The buyer's token: it opens this purchase and begins no new one. */
  readonly token: ReadToken | undefined;
  /** The terms of the payment. */
  readonly agreed: Agreed;
  /**
   * The paid request without the configured headers, or its method alone where the record is over.
   * Undefined where the call asks for another purchase or lacks the buyer's secret, and where the
   * request is sealed with a key that this process does not have.
   */
  readonly request: BackendRequest | undefined;
}

/** The methods that `bind` may contain: a final record has no other trace of its method. */
const METHODS: readonly BackendRequest['method'][] = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'];

/** @throws StoreError */
export type FindKnown = (call: Refused) => Promise<KnownPayment | NoRecord>;

/** The settings behind replay keys and addresses of resources. */
interface KnownScope {
  /** The assets of this configuration. */
  readonly assets: readonly { readonly chainId: number; readonly asset: string }[];
  readonly publicBaseUrl: string;
}

/** States in which nothing was taken. In the others money has moved or may have. */
const UNPAID: readonly PaymentState[] = ['reserved', 'worked', 'withdrawn', 'refused'];

/** Finds by replay key, in the present assets and in the one that the proof accepts. */
export function createFindKnown(ledger: Pick<PaymentLedger, 'read'>, { publicBaseUrl, assets }: KnownScope): FindKnown {
  return async ({ resourceId, input, callerHeaders = {}, ...shown }) => {
    const found = await recordOf(ledger, assets, shown);
    if (found === undefined) return { kind: 'none' };
    const { record } = found;
    const method = isOpenedBy(found, shown)
      ? METHODS.find((one) => whatIsBought(resourceId, { method: one, callerHeaders }, input) === record.bind)
      : undefined;
    const { amount, currency, backendRequest, state } = record;
    // A record that is over never leads to the backend again, and has forgotten its request.
    const isOver = FORGOTTEN_IN[state]?.['backendRequest'] !== undefined;
    const requirements =
      isOver || unreadable(record) !== undefined ? clearRequirements(record) : readStoredProof(record).requirements;
    const agreed = { requirements, resourceUrl: invokeUrl(publicBaseUrl, resourceId), amount, currency };
    const known = { kind: 'known', ...found, agreed } as const;
    if (method !== undefined && isOver)
      return { ...known, request: { method, path: '/', headers: {}, body: undefined } };
    const isReadable = method !== undefined && !isSealed(backendRequest);
    return { ...known, request: isReadable ? readStoredRequest(backendRequest, {}) : undefined };
  };
}

type Found = Pick<KnownPayment, 'record' | 'proof' | 'token'>;

/** @throws StoreError */
async function recordOf(
  ledger: Pick<PaymentLedger, 'read'>,
  assets: KnownScope['assets'],
  { proof: carried }: Pick<Shown, 'proof'>,
): Promise<Found | undefined> {
  const proof = 'value' in carried ? decodeProof(carried.value) : undefined;
  if (proof?.kind !== 'decoded') return undefined;
  let record: PaymentRecord | undefined;
  for (const payId of replayKeys(proof.payload, assets)) {
    const found = await ledger.read(payId);
    // One nonce may have a payment on each network: the proof is that of one of them.
    if (found !== undefined && isProofOf(found.proofDigest, { ...proof, payId })) {
      record = found;
      break;
    }
    record ??= found;
  }
  if (record === undefined) return undefined;
  const text = proof.buyerToken === undefined ? undefined : tokenText(proof.buyerToken);
  const token = text === undefined ? undefined : { ...OPENS_ONLY, text };
  return { record, proof, token };
}

const OPENS_ONLY = { genuineForMs: 0, offeredUntilMs: undefined, answerOf: undefined, boundTo: undefined } as const;

/** Whether the buyer's secret came with the proof. */
function isOpenedBy(
  { record, proof, token }: Found,
  { idempotencyKey: key = proof.paymentIdentifier }: Pick<Shown, 'idempotencyKey'>,
): boolean {
  const { payId } = record;
  return opens(record, {
    ...(key === undefined ? {} : { keyDigest: keyDigest(payId, key) }),
    ...(token === undefined ? {} : { tokenDigest: tokenDigest(payId, token.text) }),
  });
}

/** A purchase that its buyer asks about. */
interface OwnPurchase extends Shown {
  readonly receiptId: string;
}

/** Undefined: no purchase of that id is this caller's. @throws StoreError */
export type FindOwn = (asked: OwnPurchase) => Promise<PaymentRecord | undefined>;

/**
 * Finds the purchase of a proof for the buyer alone: the proof is public, so a purchase without a
 * secret is shown to no caller. The signature must equal the one that paid; it is not verified
 * again, so no wallet contract is asked. Each mismatch gives undefined.
 */
export function createFindOwn(ledger: Pick<PaymentLedger, 'read'>, { assets }: Pick<KnownScope, 'assets'>): FindOwn {
  return async ({ receiptId, ...shown }) => {
    const found = await recordOf(ledger, assets, shown);
    if (found === undefined || !isOpenedBy(found, shown)) return undefined;
    const { record, proof } = found;
    if (record.receiptId !== receiptId || UNPAID.includes(record.state)) return undefined;
    if (!isProofOf(record.proofDigest, { ...proof, payId: record.payId })) return undefined;
    return record.keyDigest === undefined && record.tokenDigest === undefined ? undefined : record;
  };
}
