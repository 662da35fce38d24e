/** One purchase over HTTP, step by step. */

import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http';
import type { Buyer } from './buyer.ts';

/** The offer of a challenge, with what a person reads of it. */
export interface Challenge {
  /** Base units. */
  readonly units: bigint;
  readonly asset: string;
  readonly payTo: string;
  readonly network: string;
  readonly message: string;
  /** The PaymentRequired document, to be signed. */
  readonly paymentRequired: unknown;
}

/** The answer to a paid call. */
export interface Purchase {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  readonly transaction: string;
  readonly requestId: string;
}

/** Calls a paid resource without a proof. @throws Error when the answer is no challenge. */
export async function askPrice(baseUrl: string, resourceId: string, input: string): Promise<Challenge> {
  return readChallenge(await invoke(baseUrl, resourceId, input, {}));
}

/** The challenge in an answer. @throws Error when it is none */
export async function readChallenge(response: Response): Promise<Challenge> {
  const text = await response.text();
  const header = response.headers.get('payment-required');
  if (response.status !== 402 || header === null)
    throw new Error(`expected a challenge, got ${response.status} ${text}`);
  const paymentRequired = decodePaymentRequiredHeader(header);
  const offer = paymentRequired.accepts[0];
  if (offer === undefined) throw new Error('the challenge offers no way to pay');
  const { message = '' } = JSON.parse(text) as { readonly message?: string };
  const { amount, asset, payTo, network } = offer;
  return { units: BigInt(amount), asset, payTo, network, message, paymentRequired };
}

/**
 * Repeats the call with a proof, and with a mandate where one is given. @throws Error when it was
 * not answered with a settlement.
 */
export async function redeem(
  baseUrl: string,
  resourceId: string,
  input: string,
  proof: string,
  mandate?: string,
): Promise<Purchase> {
  const response = await invoke(baseUrl, resourceId, input, {
    'payment-signature': proof,
    ...(mandate === undefined ? {} : { 'agent-authorization': mandate }),
  });
  const body = Buffer.from(await response.arrayBuffer());
  const summary = response.headers.get('payment-response');
  if (summary === null) throw new Error(`expected a settlement, got ${response.status} ${body.toString()}`);
  return {
    status: response.status,
    contentType: response.headers.get('content-type') ?? '',
    body,
    transaction: decodePaymentResponseHeader(summary).transaction,
    requestId: response.headers.get('x-request-id') ?? '',
  };
}

/** Challenge, signature and delivery in one go. */
export async function buy(buyer: Buyer, baseUrl: string, resourceId: string, input: string): Promise<Purchase> {
  const { paymentRequired } = await askPrice(baseUrl, resourceId, input);
  return redeem(baseUrl, resourceId, input, await buyer.pay(paymentRequired));
}

function invoke(
  baseUrl: string,
  resourceId: string,
  input: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  return fetch(`${baseUrl}/api/resources/${resourceId}/invoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: input,
  });
}
