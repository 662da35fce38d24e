import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { rawCreate, refusalIn } from '../../../spec/adapters/acp/raw.ts';
import {
  askAcp,
  assertAcpError,
  CART,
  type CheckoutTestbed,
  openCheckoutTestbed,
} from '../../../spec/adapters/acp/testbed.ts';
import type { Answered } from '../../../spec/e2e/ask.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import { attack, proven, times } from '../catalogue.ts';

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

  attack('A6', 'other spellings of path and body are the same call', async () => {
    const id = await session();
    const first = await complete(id, 'spelled', paying('tok'));
    const paths = [id, `%63${id.slice(1)}`, id.replace('_', '%5F'), id.replace('_', '%5f')];
    const bodies = [JSON.stringify(paying('tok')), JSON.stringify(paying('tok'), null, 2), PAYING_BACKWARDS];
    for (const path of paths)
      for (const body of bodies) {
        const again = await complete(path, 'spelled', body);
        assert.deepEqual([again.status, again.text, again.headers['idempotent-replayed']], [200, first.text, 'true']);
      }
    assert.deepEqual([open.backend.posts(id), open.backend.orders(id)], [1, 1]);
  });

  attack('A6', 'one key on another path is another call, and reveals nothing of the first', async () => {
    const [mine, theirs] = [await session(), await session()];
    const paid = await complete(mine, 'everywhere');
    const other = await complete(theirs, 'everywhere');
    assert.equal(other.status, 200);
    assert.equal(other.headers['idempotent-replayed'], undefined);
    assert.notEqual(other.text, paid.text);
    const canceled = await askAcp(open.gateway.url, {
      path: `/checkout_sessions/${mine}/cancel`,
      headers: { 'idempotency-key': 'everywhere' },
      body: paying('tok'),
    });
    assertAcpError(canceled, 405, 'checkout_session_not_cancelable');
  });

  attack(
    ['A6', 'H3'],
    'keys that are too long, not ASCII or repeated are refused, claim nothing and are not echoed',
    async () => {
      open.backend.forget();
      for (const lines of [
        [`Idempotency-Key: ${'k'.repeat(256)}`],
        [`Idempotency-Key: ${Buffer.from('ключ').toString('latin1')}`],
        ['Idempotency-Key: caf\xe9'],
        ['Idempotency-Key: a\tb'],
        ['Idempotency-Key: a', 'Idempotency-Key: a'],
        ['Idempotency-Key: a', 'idempotency-key: b'],
      ]) {
        const answer = await rawCreate(open.gateway.url, lines);
        assert.deepEqual(refusalIn(answer), { status: 400, code: 'idempotency_key_invalid' }, lines.join());
        assert.doesNotMatch(answer, /\r\nidempotency-key:/i);
      }
      assert.equal(open.backend.calls.length, 0);
      const longest = await askAcp(open.gateway.url, { headers: { 'idempotency-key': 'k'.repeat(255) }, body: CART });
      assert.equal(longest.status, 201);
    },
  );

  proven(
    'A6',
    'spec/adapters/acp/response.spec.ts',
    'is a conflict when the body is another one, and the backend is not called',
  );
  proven('A6', 'spec/adapters/acp/response.spec.ts', 'is a new one for another client: each has its own keys');
  proven(
    ['A6', 'H3'],
    'spec/adapters/acp/clients.spec.ts',
    'must come once: two are refused, even when one of them is right',
  );
  proven(
    'A6',
    'verification/chaos/checkout/deaths.spec.ts',
    'with calls of every operation at the backend: 409 until the leases end, one answer each, complete and cancel read back',
  );
  proven(['A6', 'O7'], 'spec/adapters/acp/events.spec.ts', 'hold nothing of the caller’s or the backend’s');
  proven(['A6', 'O7'], 'spec/e2e/canary-acp.spec.ts', 'comes out nowhere');
});

/** Of `paying('tok')`: the same members from the last to the first, one of them escaped. */
const PAYING_BACKWARDS =
  '{"payment_data":{"instrument":{"credential":{"token":"\\u0074ok","type":"spt"},"type":"card"},"handler_id":"card"}}';
