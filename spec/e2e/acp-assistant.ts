/** An agent of ACP, which opens sessions and pays them, for the checkout specs. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '../../src/json/json.ts';
import { askAcp, CART } from '../adapters/acp/testbed.ts';
import type { Answered } from './ask.ts';

/** The calls of an agent; each POST has an idempotency key of its own unless one is given. */
export interface Assistant {
  post(path: string, body: JsonObject, key?: string): Promise<Answered>;
  get(path: string): Promise<Answered>;
  /** Opens a session. @returns its path */
  open(cart?: JsonObject): Promise<string>;
}

/** Where a call is to go; replicas may take turns. */
export function assistantAt(url: () => string): Assistant {
  const post = (path: string, body: JsonObject, key: string = randomUUID()): Promise<Answered> =>
    askAcp(url(), { path, body, headers: { 'idempotency-key': key } });
  return {
    post,
    get: (path) => askAcp(url(), { method: 'GET', path }),
    async open(cart = CART) {
      const answer = await post('/checkout_sessions', cart);
      assert.equal(answer.status, 201, answer.text);
      return `/checkout_sessions/${String(documentIn(answer)['id'])}`;
    },
  };
}

/** A payment with a token of the buyer's card. */
export function paymentWith(token: string, more: JsonObject = {}): JsonObject {
  const instrument = { type: 'card', credential: { type: 'spt', token } };
  return { payment_data: { handler_id: 'card', instrument }, ...more };
}

/** The document of an answer with this status. */
export function documentIn({ status, text }: Answered, expected: number = status): JsonObject {
  assert.equal(status, expected, text);
  return JSON.parse(text) as JsonObject;
}
