import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import {
  askAcp,
  assertAcpError,
  type CheckoutTestbed,
  openCheckoutTestbed,
} from '../../../spec/adapters/acp/testbed.ts';
import type { Answered } from '../../../spec/e2e/ask.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import { attack, times } from '../catalogue.ts';

const AT_ONCE = times(12, 60);

const paying = (token: string): JsonObject => ({
  payment_data: { handler_id: 'card', instrument: { type: 'card', credential: { type: 'spt', token } } },
});

describe('attacks with the keys of checkouts', () => {
  let open: CheckoutTestbed;
  before(async () => {
    open = await openCheckoutTestbed({ acp: { limits: { maxInFlight: 2 * AT_ONCE } } });
  });
  after(() => open.close());

  const session = async (): Promise<string> => {
    const { text } = await askAcp(open.gateway.url);
    return (JSON.parse(text) as { readonly id: string }).id;
  };
  const complete = (id: string, key: string, body: JsonObject | string = paying('tok')): Promise<Answered> =>
    askAcp(open.gateway.url, { path: `/checkout_sessions/${id}/complete`, headers: { 'idempotency-key': key }, body });
  const statuses = (answers: readonly Answered[], status: number): number =>
    answers.filter((answer) => answer.status === status).length;

  attack('A6', 'one key with many payments at once: one payment is made, and the others conflict', async () => {
    const id = await session();
    const tokens = Array.from({ length: AT_ONCE }, (_, at) => `tok_${at}`);
    const answers = await Promise.all(tokens.map((token) => complete(id, 'one key', paying(token))));
    assert.deepEqual([statuses(answers, 200), statuses(answers, 422)], [1, AT_ONCE - 1]);
    for (const answer of answers.filter(({ status }) => status !== 200))
      assertAcpError(answer, 422, 'idempotency_conflict');
    assert.deepEqual([open.backend.posts(id), open.backend.orders(id)], [1, 1]);
  });

  attack('A6', 'many keys with one session at once: one of them pays', async () => {
    const id = await session();
    const keys = Array.from({ length: AT_ONCE }, (_, at) => `key ${at}`);
    const answers = await Promise.all(keys.map((key) => complete(id, key)));
    assert.equal(statuses(answers, 200), 1);
    for (const answer of answers.filter(({ status }) => status !== 200))
      assertAcpError(answer, 409, 'checkout_session_conflict');
    assert.equal(open.backend.orders(id), 1);
  });
});
