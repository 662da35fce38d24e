/** A paid call that is sent as often as needed. */

import { setTimeout as delay } from 'node:timers/promises';
import { decodePaymentSignatureHeader } from '@x402/core/http';
import { askPrice } from '../../../spec/support/purchase.ts';
import { LOCAL_CHAIN_ID } from '../../../src/payments/pricing/networks.ts';
import { backendIdempotencyKey } from '../../../src/payments/settlement/terms.ts';
import { replayKey } from '../../../src/payments/x402/wire/proof.ts';
import type { Ground, Site } from './site.ts';

/** A call with its proof: sent as often as needed, never changed. */
export interface PaidCall {
  readonly resourceId: string;
  /** JSON text. */
  readonly input: string;
  readonly proof: string;
  /** Idempotency-Key, when the buyer gives one. */
  readonly key: string | undefined;
  readonly payId: string;
  /** Nonce of the authorization. */
  readonly nonce: `0x${string}`;
  /** The one idempotency key of this purchase at the backend. */
  readonly merchantKey: string;
  /** Base units. */
  readonly units: bigint;
}

/** A complete answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The error of the gateway, when the answer is its own. */
  readonly error: Failure | undefined;
}

interface Failure {
  readonly code: string;
  readonly retryable: boolean;
  readonly details?: {
    readonly state?: string;
    readonly reason?: string;
    readonly payment?: { readonly externalReference?: string };
  };
}

/** How long a strict client retries, milliseconds. */
const PATIENCE_MS = 45_000;
/** Between two attempts without a Retry-After, milliseconds. */
const PAUSE_MS = 100;

/** Asks for the price at a site and signs for it. */
export async function signedCall(
  { buyer, chain }: Ground,
  { baseUrl }: Site,
  resourceId: string,
  input: object,
  key?: string,
): Promise<PaidCall> {
  const text = JSON.stringify(input);
  const { paymentRequired, units } = await askPrice(baseUrl, resourceId, text);
  const proof = await buyer.pay(paymentRequired);
  return { resourceId, input: text, proof, key, units, ...keysOf(proof, chain.token.address) };
}

function keysOf(proof: string, asset: string): Pick<PaidCall, 'payId' | 'nonce' | 'merchantKey'> {
  const { authorization } = decodePaymentSignatureHeader(proof).payload as {
    readonly authorization: { readonly from: string; readonly nonce: PaidCall['nonce'] };
  };
  const payId = replayKey({ chainId: LOCAL_CHAIN_ID, asset, ...authorization });
  return { payId, nonce: authorization.nonce, merchantKey: backendIdempotencyKey(payId) };
}

/** Sends the call once, until `signal` ends it. Undefined when no whole answer came. */
export async function send(
  call: PaidCall,
  baseUrl: string,
  signal = AbortSignal.timeout(PATIENCE_MS),
): Promise<Answer | undefined> {
  try {
    const response = await fetch(`${baseUrl}/api/resources/${call.resourceId}/invoke`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'payment-signature': call.proof,
        ...(call.key === undefined ? {} : { 'idempotency-key': call.key }),
      },
      body: call.input,
      signal,
    });
    const { status, headers } = response;
    const text = await response.text();
    return { status, headers, text, error: status < 400 ? undefined : failureOf(text) };
  } catch {
    return undefined;
  }
}

/**
 * Sends the call until it is cut or has an end: on a slow machine a verdict may come too late,
 * before the gateway reaches the step at which it dies. Undefined when no whole answer came.
 */
export async function sendUntilCut(call: PaidCall, baseUrl: string): Promise<Answer | undefined> {
  for (;;) {
    const answer = await send(call, baseUrl);
    if (answer?.error?.retryable !== true) return answer;
    await delay(PAUSE_MS);
  }
}

/** Sends the call once. @throws Error when no whole answer came */
export async function ask(call: PaidCall, baseUrl: string): Promise<Answer> {
  const answer = await send(call, baseUrl);
  if (answer === undefined) throw new Error('no answer');
  return answer;
}

function failureOf(text: string): Failure | undefined {
  try {
    return JSON.parse(text) as Failure;
  } catch {
    return undefined;
  }
}

/**
 * The strictest conforming client: the same proof again after silence and after everything that may
 * be retried. A 402 would make it sign a second payment, so it fails the test. @throws Error on
 * 402, or after the longest wait
 */
export async function insist(call: PaidCall, baseUrl: string): Promise<Answer> {
  const ends = Date.now() + PATIENCE_MS;
  let last: Answer | undefined;
  while (Date.now() < ends) {
    last = await send(call, baseUrl);
    if (last?.status === 402) throw new Error(`asked to pay a second time: ${last.text}`);
    if (last !== undefined && last.error?.retryable !== true) return last;
    await delay(last === undefined ? PAUSE_MS : 1_000 * Number(last.headers.get('retry-after') ?? PAUSE_MS / 1_000));
  }
  throw new Error(`no end after ${PATIENCE_MS} ms; last: ${last?.status} ${last?.text}`);
}
