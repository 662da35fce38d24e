/** Purchases at the backend's own addresses. */

import assert from 'node:assert/strict';
import type { TestGateway } from '../support/gateway.ts';
import { callInPlace } from '../support/in-place.ts';
import type { Testbed } from '../support/testbed.ts';
import { type Brought, read } from './bring.ts';

/** A fresh proof for a resource, made from the 402 of its own address. */
export async function proofInPlace({ gateway, buyer }: Pick<Testbed, 'gateway' | 'buyer'>, id: string, input: unknown) {
  const answer = await callInPlace(gateway, id, input);
  assert.equal(answer.status, 402);
  const { payment } = (await answer.json()) as { readonly payment: { readonly envelope: unknown } };
  return buyer.pay(payment.envelope);
}

/** A call in place with a proof. */
export async function bringInPlace(
  gateway: Pick<TestGateway, 'url'>,
  id: string,
  input: unknown,
  { proof, headers = {} }: { readonly proof: string; readonly headers?: Readonly<Record<string, string>> },
): Promise<Brought> {
  return read(await callInPlace(gateway, id, input, { 'payment-signature': proof, ...headers }));
}
