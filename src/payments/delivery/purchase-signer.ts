/**
 * Signs the documents that a buyer keeps of a purchase: the receipt of x402, which says that the
 * payment was accepted, and the gateway's own statement of the delivery. Signs the JWT that tells
 * the backend of a payment.
 */

import { compactSigner, type HostKey, type SigningKey } from '../../crypto/signing-key.ts';
import type { ReceiptDigests } from '../../receipts/receipt.ts';
import type { PaymentRecord } from '../ledger/ledger.ts';
import { authorizationOf } from '../ledger/payment-receipt.ts';
import type { PaymentContext } from '../settlement/terms.ts';
import { invokeUrl } from '../x402/wire/challenge.ts';
import { signedReceipt } from '../x402/wire/payment-response.ts';
import { OFFER_RECEIPT, type PaymentResponse } from '../x402/wire/types.ts';

/** `typ` of a statement: no other document of this key is taken for one. */
export const STATEMENT_TYPE = 'agent-commerce-delivery+jwt';
const VERSION = 1;

/** The facts of a statement beside the payment. */
interface StatementFacts {
  /** State of the payment, as contract 4.3 names it. */
  readonly state: string;
  /** Digests of the input and of the delivered bytes; absent where nothing was delivered. */
  readonly digests?: ReceiptDigests | undefined;
  /** HTTP status of the merchant's answer. */
  readonly status?: number | undefined;
  /** Unix milliseconds. */
  readonly deliveredAt?: number | undefined;
}

/** Neither method throws: a document that cannot be signed is reported and left out. */
export interface PurchaseSigner {
  /** The response with the receipt that its payment is accepted for delivery. */
  withReceipt(response: PaymentResponse, record: PaymentRecord): PaymentResponse;
  /** The statement of a purchase as compact JWS. */
  statement(record: PaymentRecord, facts: StatementFacts): string | undefined;
}

/** `onFailure` gets why something could not be signed. */
export function createPurchaseSigner(
  key: HostKey,
  publicBaseUrl: string,
  onFailure: (cause: unknown) => void,
  now: () => number = Date.now,
): PurchaseSigner {
  const orNothing = <Made>(make: () => Made): Made | undefined => {
    try {
      return make();
    } catch (cause) {
      onFailure(cause);
      return undefined;
    }
  };
  return {
    withReceipt(response, record) {
      const url = invokeUrl(publicBaseUrl, record.resourceId);
      const receipt = orNothing(() => signedReceipt(key, record, url, seconds(now())));
      return receipt === undefined ? response : { ...response, extensions: { [OFFER_RECEIPT]: receipt } };
    },
    statement: (record, { state, digests, status, deliveredAt }) =>
      orNothing(() => {
        const { receiptId, payId, network, asset, units, payer, payee, transaction, refundTransaction } = record;
        const delivered =
          digests === undefined
            ? {}
            : { input: digests.input, answer: { sha256: digests.answer, bytes: digests.bytes, status: status ?? 0 } };
        const payment = { payId, network, asset, amount: units, payer, payTo: payee };
        return key.sign(
          {
            version: VERSION,
            receiptId,
            resourceUrl: invokeUrl(publicBaseUrl, record.resourceId),
            state,
            issuedAt: seconds(now()),
            ...(deliveredAt === undefined ? {} : { deliveredAt: seconds(deliveredAt) }),
            ...delivered,
            payment: transaction === undefined ? payment : { ...payment, transaction },
            ...(refundTransaction === undefined ? {} : { refund: { transaction: refundTransaction } }),
          },
          STATEMENT_TYPE,
        );
      }),
  };
}

/** `typ` of the JWT for the backend. */
const CONTEXT_TYPE = 'agent-commerce-payment+jwt';
/** How long the JWT lives after the last moment at which its request may leave, seconds. */
const CONTEXT_LIFE_SECONDS = 60;

/**
 * Makes the JWT of contract 3 for the backend. Its `kid` is that of the key set, where libraries of
 * JWT look it up. `audience`: the address of the backend; `timeoutMs`: its longest deadline, within
 * which an exchange may connect again and send the JWT.
 */
export function createPaymentContext(
  key: SigningKey,
  { issuer, audience, timeoutMs }: { readonly issuer: string; readonly audience: string; readonly timeoutMs: number },
  now: () => number = Date.now,
): PaymentContext {
  const lifeSeconds = CONTEXT_LIFE_SECONDS + Math.ceil(timeoutMs / 1_000);
  const { alg, kid } = key.publicJwk;
  const sign = compactSigner(key, { alg, kid, typ: CONTEXT_TYPE });
  return function contextOf(record, requestId) {
    const { receiptId, resourceId, payer, amount, currency, network, settledAt } = record;
    const iat = seconds(now());
    return sign(
      JSON.stringify({
        ...{ iss: issuer, aud: audience, iat, exp: iat + lifeSeconds },
        ...{ receiptId, requestId, resourceId, payer, amount, currency, network },
        state: settledAt === undefined ? 'reserved' : 'settled',
        mandate: authorizationOf(record).authorization?.reference,
      }),
    );
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000);
}
