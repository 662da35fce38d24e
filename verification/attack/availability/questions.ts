/** The bytes of the calls that the load generator sends. */

import { decodeHeader } from '../../../src/payments/x402/wire/header-codec.ts';
import { PAYMENT_REQUIRED, PAYMENT_SIGNATURE, type PaymentRequired } from '../../../src/payments/x402/wire/types.ts';
import type { CallKind } from './blend.ts';
import type { LoadTask } from './load-task.ts';
import { payersOf } from './proofs.ts';
import { postOf } from './wire-client.ts';

/** One call, ready to be written. */
export interface WrittenCall {
  readonly kind: CallKind;
  readonly request: Buffer;
}

/** The next call of a task; undefined when it is a paid one and all proofs are spent. */
export type NextCall = () => WrittenCall | undefined;

/**
 * Writes the calls of a task, and signs its proofs. @throws Error when the priced resource asks for
 * no payment
 */
export async function writeCalls({ origin, path, body, priced }: LoadTask): Promise<NextCall> {
  const free = postOf(path, body);
  if (priced === undefined) return () => ({ kind: 'free', request: free });
  const { blend, proofs } = priced;
  const plain = { free, challenge: postOf(priced.path, body) };
  const paid: Buffer[] = [];
  if (proofs > 0) {
    const nextProof = payersOf(await askPrice(`${origin}${priced.path}`, body));
    while (paid.length < proofs) paid.push(postOf(priced.path, body, { [PAYMENT_SIGNATURE]: nextProof() }));
  }
  let at = 0;
  return function nextCall() {
    const kind = blend[at % blend.length] ?? 'free';
    at += 1;
    const request = kind === 'paid' ? paid.pop() : plain[kind];
    return request === undefined ? undefined : { kind, request };
  };
}

async function askPrice(url: string, body: string): Promise<PaymentRequired> {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const text = await response.text();
  const terms = decodeHeader(response.headers.get(PAYMENT_REQUIRED) ?? '');
  if (response.status !== 402 || terms === undefined) throw new Error(`no challenge: ${response.status} ${text}`);
  return JSON.parse(Buffer.from(terms).toString('utf8')) as PaymentRequired;
}
