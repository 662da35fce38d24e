import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { type DocumentName, validatorOf } from '../../src/adapters/acp/validation/validator.ts';
import type { Json, JsonObject } from '../../src/json/json.ts';
import { terminate } from '../../tools/local-world/child.ts';
import { freePorts } from '../support/ports.ts';

const EXAMPLE = 'deploy/examples/acp';
describe('the sample backend of the checkout', () => {
  let backend: ChildProcess;
  let base: string;

  before(async () => {
    const [port = 0] = await freePorts(1);
    base = `http://127.0.0.1:${port}`;
    backend = spawn(process.execPath, [`${EXAMPLE}/merchant.mjs`], { env: { PORT: String(port) }, stdio: 'inherit' });
    await once(backend, 'spawn');
    await untilAnswers(`${base}/orders`);
  });
  after(() => terminate(backend, 5_000));

  async function call(path: string, body?: Json, key?: string): Promise<readonly [number, JsonObject]> {
    const headers = { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) };
    const init = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${base}${path}`, init);
    return [response.status, (await response.json()) as JsonObject];
  }

  const pay = (token: string): JsonObject => ({
    payment_data: {
      handler_id: 'card',
      instrument: { type: 'card', credential: { type: 'spt', token } },
    },
  });
  const opened = async (...ids: readonly string[]): Promise<string> => {
    const [status, session] = await call('/checkout_sessions', {
      ...{ line_items: ids.map((id) => ({ id })), currency: 'eur', capabilities: {} },
    });
    assert.equal(status, 201);
    assertValid('CheckoutSession', session);
    return `/checkout_sessions/${String(session['id'])}`;
  };

  it('sends documents of the protocol from the first call to the order', async () => {
    const session = await opened('socks');
    for (const change of [{}, { line_items: [] }, { line_items: [{ id: 'car' }] }, { line_items: [{ id: 'scarf' }] }]) {
      const [status, updated] = await call(session, change);
      assert.equal(status, 200);
      assertValid('CheckoutSession', updated);
    }
    const [declined, declinedSession] = await call(`${session}/complete`, pay('tok_declined'));
    assertValid('CheckoutSession', declinedSession);
    assert.deepEqual([declined, declinedSession['status']], [200, 'ready_for_payment']);
    const [, asking] = await call(`${session}/complete`, pay('tok_3ds'));
    assertValid('CheckoutSession', asking);
    assert.equal(asking['status'], 'authentication_required');
    const [refused, error] = await call(`${session}/complete`, pay('tok_3ds'));
    assertValid('Error', error);
    assert.deepEqual([refused, error['code']], [422, 'requires_3ds']);
    const outcome = { authentication_result: { outcome: 'attempt_acknowledged' } };
    const [paid, completed] = await call(`${session}/complete`, { ...pay('tok_3ds'), ...outcome });
    assertValid('CheckoutSessionWithOrder', completed);
    assert.deepEqual([paid, completed['status']], [200, 'completed']);
  });

  it('cancels an open session, and refuses invalid calls with an Error', async () => {
    const session = await opened('socks');
    const [status, canceled] = await call(`${session}/cancel`, {});
    assertValid('CheckoutSession', canceled);
    assert.deepEqual([status, canceled['status']], [200, 'canceled']);
    for (const [path, body, expected] of [
      [`${session}/cancel`, {}, 405],
      [`${session}/complete`, pay('tok_fine'), 409],
      [session, { line_items: [] }, 409],
      ['/checkout_sessions/none', undefined, 404],
      ['/checkout_sessions', { line_items: 'socks' }, 400],
    ] as const) {
      const [refused, error] = await call(path, body);
      assertValid('Error', error);
      assert.equal(refused, expected, path);
    }
  });

  it('acts once for a key, also when the first answer was lost', async () => {
    const session = await opened('socks');
    for (const token of ['tok_reset', 'tok_reset', 'tok_reset'])
      await call(`${session}/complete`, pay(token), 'one-key').catch(() => undefined);
    const [, orders] = await call('/orders');
    assert.ok(Array.isArray(orders));
    const id = session.split('/').at(-1);
    const made = orders.filter((order: Json) => JSON.stringify(order).includes(String(id)));
    assert.equal(made.length, 1);
  });
});

function assertValid(name: DocumentName, document: Json): void {
  assert.equal(validatorOf('strict', name)(document), undefined, JSON.stringify(document));
}

async function untilAnswers(url: string): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const answered = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (answered) return;
    assert.ok(Date.now() < deadline, 'the backend answers');
  }
}
