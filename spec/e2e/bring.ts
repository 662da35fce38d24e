/** Invokes a resource with a proof and reads the answer as a buyer does. */

import assert from 'node:assert/strict';
import { decodePaymentResponseHeader } from '@x402/core/http';
import type { PaymentResponse } from '../../src/payments/x402/wire/types.ts';
import type { TestGateway } from '../support/gateway.ts';
import { isEnvelope } from './ask.ts';

/** An answer, read to its end. */
export interface Brought {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  /** The PAYMENT-RESPONSE, when there was one. */
  readonly payment: PaymentResponse | undefined;
  readonly requestId: string;
}

/** The error envelope with what the specs of payments look at. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details: {
    readonly state?: string;
    readonly reason?: string;
    readonly settlementUncertain?: boolean;
    readonly retryUntil?: string;
    readonly transactionHash?: string;
    readonly payment?: Readonly<Record<string, unknown>>;
  };
}

/** Invokes a resource with a proof, and with a key when one is given. */
export async function bring(
  gateway: Pick<TestGateway, 'invoke'>,
  resourceId: string,
  input: unknown,
  { proof, key, requestId }: { readonly proof: string; readonly key?: string; readonly requestId?: string },
): Promise<Brought> {
  const headers = {
    'payment-signature': proof,
    ...(key === undefined ? {} : { 'idempotency-key': key }),
    ...(requestId === undefined ? {} : { 'x-request-id': requestId }),
  };
  return read(await gateway.invoke(resourceId, input, headers));
}

/** Reads an answer to its end. */
export async function read(response: Response): Promise<Brought> {
  const header = response.headers.get('payment-response');
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
    payment: header === null ? undefined : (decodePaymentResponseHeader(header) as unknown as PaymentResponse),
    requestId: response.headers.get('x-request-id') ?? '',
  };
}

/** The one envelope, with this status and code. */
export function failure({ status, bytes }: Brought, expected: number, code: string): Failure {
  assert.equal(status, expected, bytes.toString());
  const body = JSON.parse(bytes.toString()) as Failure;
  assert.ok(isEnvelope(body), JSON.stringify(isEnvelope.errors));
  assert.equal(body.code, code);
  return body;
}

/** 409 PAYMENT_REPLAYED in this state. */
export function replayed(answer: Brought, state: string): Failure {
  const body = failure(answer, 409, 'PAYMENT_REPLAYED');
  assert.equal(body.details.state, state);
  assert.equal(body.retryable, state === 'in_flight');
  return body;
}
