import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { MAX_SEALED_BYTES } from '../../../src/adapters/a2a/parked-task.ts';
import { decode } from '../../e2e/proofs.ts';
import { createBuyer } from '../../support/buyer.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import {
  ACTIVATED,
  CONTINUED,
  dataOf,
  deliveryOf,
  ENABLED,
  errorOf,
  type Members,
  message,
  paying,
  postA2a,
  send,
  sendMessage,
  type Task,
  taskOf,
  VERSION,
  X402_URI,
  x402Of,
} from './post.ts';

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const REPORT = { ...CITY, currency: 'EUR', price: '12.50', volume: 340 };
const OLD_URI = 'https://github.com/google-a2a/a2a-x402/v0.1';

const post = (base: string, content: object) => postA2a(base, sendMessage(content), { ...VERSION, ...ACTIVATED });
const call = (base: string, resource = 'market_report', input: Members = CITY): Promise<Task> =>
  send(base, message(resource, input), ACTIVATED);
const declining = (taskId: string): Members => ({
  ...paying(taskId, undefined),
  metadata: { 'x402.payment.status': 'payment-rejected' },
});

for (const store of ['sqlite', 'redis'] as const)
  describe(`a task that waits for its payment, over ${store}`, () => {
    let redis: TestRedis | undefined;
    let testbed: Testbed;
    let base: string;
    before(async () => {
      redis = store === 'redis' ? await startRedis() : undefined;
      const storage = redis === undefined ? {} : { storage: { redis: { url: redis.url } } };
      testbed = await openTestbed({ ...storage, overrides: CONTINUED });
      base = testbed.gateway.url;
    });
    after(async () => {
      await testbed?.close();
      await redis?.stop();
    });

    const payloadFor = async (task: Task): Promise<Members> =>
      decode(await testbed.buyer.pay(x402Of(task)['x402.payment.required'])) as Members;
    const asked = async (resource?: string, input?: Members) => {
      const task = await call(base, resource, input);
      return { task, id: task.id, payload: await payloadFor(task), second: await payloadFor(task) };
    };
    const refused = async (content: Members) => errorOf(await post(base, content), 1);
    const reasonOf = async (content: Members) => (await refused(content)).data[0]?.reason;
    const completes = async (content: Members): Promise<Task> => {
      const task = await send(base, content);
      assert.deepEqual([task.id, task.status.state], [content['taskId'], 'TASK_STATE_COMPLETED']);
      return task;
    };
    const keepsWaiting = async (content: Members, headers = {}): Promise<Task> => {
      const task = await send(base, content, headers);
      assert.deepEqual([task.id, task.status.state], [content['taskId'], 'TASK_STATE_INPUT_REQUIRED']);
      return task;
    };

    it('waits only when the request activates the extension, by either name of header and extension', async () => {
      const activations: readonly (readonly [headers: Record<string, string>, echoed: string | undefined])[] = [
        [{}, undefined],
        [{ 'a2a-extensions': 'https://example.com/other' }, undefined],
        [{ 'a2a-extensions': X402_URI }, X402_URI],
        [{ 'x-a2a-extensions': X402_URI }, X402_URI],
        [{ 'a2a-extensions': `https://example.com/other, ${OLD_URI}` }, OLD_URI],
        [{ 'a2a-extensions': `${OLD_URI},${X402_URI}` }, `${X402_URI}, ${OLD_URI}`],
      ];
      for (const [headers, echoed] of activations) {
        const answer = await postA2a(base, sendMessage(message('market_report', CITY)), { ...VERSION, ...headers });
        assert.equal(answer.headers['a2a-extensions'], echoed);
        const task = taskOf(answer);
        assert.equal(task.status.state, echoed === undefined ? 'TASK_STATE_FAILED' : 'TASK_STATE_INPUT_REQUIRED');
        assert.equal(dataOf(task)['code'], 'PAYMENT_REQUIRED', 'the artifact is there in both flows');
        assert.equal(x402Of(task)['x402.payment.status'], 'payment-required');
      }
    });

    it('a message with its id, a text and a payment completes it, for exactly the price', async () => {
      const [bought, earned] = [await testbed.buyer.balance(), await testbed.income()];
      const { task: first, payload } = await asked();
      const task = await completes(paying(first.id, payload, { contextId: first.contextId }));
      assert.equal(task.contextId, first.contextId);
      assert.notEqual(task.metadata['agent-commerce/requestId'], first.metadata['agent-commerce/requestId']);
      assert.deepEqual(dataOf(task), REPORT);
      assert.equal(x402Of(task)['x402.payment.status'], 'payment-completed');
      assert.equal(bought - (await testbed.buyer.balance()), PRICE_UNITS);
      assert.equal((await testbed.income()) - earned, PRICE_UNITS);
    });

    it('a free call does not wait', async () =>
      assert.equal((await call(base, 'cities', {})).status.state, 'TASK_STATE_COMPLETED'));

    it('the largest call that can wait is paid twice with the same message; a larger one does not wait', async () => {
      const frame = JSON.stringify([Date.now(), '0'.repeat(36), 'echo', { text: '' }]);
      const text = 'a'.repeat(MAX_SEALED_BYTES - frame.length);
      const { id, payload } = await asked('echo', { text });
      const sent = paying(id, payload);
      for (const _ of ['first', 'again']) await completes(sent);
      const larger = await call(base, 'echo', { text: `${text}a` });
      assert.deepEqual([larger.status.state, dataOf(larger)['code']], ['TASK_STATE_FAILED', 'PAYMENT_REQUIRED']);
    });

    it('an unknown task, and a message without a payment, is TASK_NOT_FOUND', async () => {
      const { id, payload } = await asked();
      for (const taskId of [randomUUID(), 'constructor', 'x'.repeat(300)]) {
        const { code, data, message: text } = await refused(paying(taskId, payload));
        assert.deepEqual([code, data[0]?.reason], [-32004, 'TASK_NOT_FOUND']);
        assert.match(text, /send the order again with the same payment/);
      }
      assert.equal(await reasonOf(message('market_report', CITY, { taskId: id })), 'TASK_NOT_FOUND');
      await completes(paying(id, payload));
    });

    it('another context is a bad parameter, and the task goes on waiting', async () => {
      const { id, payload } = await asked();
      const error = await refused(paying(id, payload, { contextId: randomUUID() }));
      assert.deepEqual([error.code, error.data[0]?.fieldViolations?.[0]?.field], [-32602, 'message.contextId']);
      await completes(paying(id, payload));
    });

    it('the message may repeat the call, and must not name another one', async () => {
      const { id, payload } = await asked();
      const repeating = (resource: string, input: Members): Members =>
        paying(id, payload, { parts: [{ data: { resource, input } }] });
      for (const other of [repeating('price_list', {}), repeating('market_report', { city: 'Lisboa' })])
        assert.equal((await refused(other)).data[0]?.fieldViolations?.[0]?.field, 'message.parts[0].data');
      const task = await completes(repeating('market_report', { ...CITY, _authorization: '' }));
      assert.equal(dataOf(task)['city'], 'Berlin');
    });

    it('a refused payment leaves the task waiting, with a fresh challenge', async () => {
      const poor = await createBuyer(testbed.chain, 0n);
      const { task, id } = await asked();
      const empty = decode(await poor.pay(x402Of(task)['x402.payment.required']));
      const again = await keepsWaiting(paying(id, empty));
      assert.equal(x402Of(again)['x402.payment.error'], 'INSUFFICIENT_FUNDS');
      await completes(paying(id, await payloadFor(again)));
    });

    it('a payment that can never pay, readable or not, leaves the task open', async () => {
      const { id, payload, second } = await asked();
      for (const worthless of [{ x402Version: 2 }, 'bm9uZQ==', { ...payload, x402Version: 3 }])
        await keepsWaiting(paying(id, worthless));
      await completes(paying(id, second));
    });

    it('a payment of another call, or with an illegal key, leaves the task open for another one', async () => {
      const { id, payload, second } = await asked();
      const elsewhere = message('market_report', { city: 'Lisboa' }, { metadata: { 'x402.payment.payload': payload } });
      assert.equal((await send(base, elsewhere)).status.state, 'TASK_STATE_COMPLETED');
      const spent = await keepsWaiting(paying(id, payload));
      assert.equal(dataOf(spent)['code'], 'PAYMENT_REPLAYED');
      const unkeyed = await keepsWaiting(paying(id, second), { ...ACTIVATED, 'idempotency-key': 'x'.repeat(256) });
      assert.equal(dataOf(unkeyed)['code'], 'INPUT_INVALID');
      await completes(paying(id, second));
    });

    it('a backend that fails leaves the task open for the same payment, and for no other', async () => {
      const earned = await testbed.income();
      const { id, payload, second } = await asked('flaky', { failures: 1 });
      const failed = await keepsWaiting(paying(id, payload));
      assert.deepEqual([dataOf(failed)['code'], dataOf(failed)['retryable']], ['BACKEND_ERROR', true]);
      assert.equal(x402Of(failed)['x402.payment.status'], 'payment-completed', 'the buyer must not sign again');
      assert.equal(await reasonOf(paying(id, second)), 'TASK_NOT_FOUND');
      assert.equal(await reasonOf(declining(id)), 'TASK_NOT_CANCELABLE');
      await completes(paying(id, payload));
      assert.equal((await testbed.income()) - earned, 1_000n, 'paid once');
    });

    it('a paid task takes no second payment, also after its own one comes damaged', async () => {
      const { id, payload, second } = await asked();
      await completes(paying(id, payload));
      const damaged = {
        ...payload,
        payload: { ...(payload['payload'] as Members), signature: `0x${'11'.repeat(65)}` },
      };
      assert.notEqual((await send(base, paying(id, damaged))).status.state, 'TASK_STATE_INPUT_REQUIRED');
      const earned = await testbed.income();
      assert.equal(await reasonOf(paying(id, second)), 'TASK_NOT_FOUND');
      assert.equal(await testbed.income(), earned);
    });

    it('the same message again gets its answer again, under the same task: paid once, run once', async () => {
      const { id, payload } = await asked();
      const sent = paying(id, payload);
      const [earned, calls] = [await testbed.income(), testbed.backend.requests.length];
      const [first, again] = [await completes(sent), await completes(sent)];
      assert.deepEqual(dataOf(again), dataOf(first));
      assert.deepEqual([deliveryOf(first)['replayed'], deliveryOf(again)['replayed']], [undefined, true]);
      assert.equal((await testbed.income()) - earned, PRICE_UNITS);
      assert.equal(testbed.backend.requests.length - calls, 1);
    });

    it('the same message three times at once is paid once, and none of them asks for another payment', async () => {
      for (let round = 0; round < 5; round += 1) {
        const { id, payload } = await asked();
        const sent = paying(id, payload);
        const earned = await testbed.income();
        const tasks = await Promise.all([send(base, sent), send(base, sent), send(base, sent)]);
        for (const task of tasks) assert.equal(task.id, id);
        const others = tasks.filter(({ status }) => status.state !== 'TASK_STATE_COMPLETED');
        assert.ok(others.length < tasks.length);
        for (const task of others) assert.notEqual(x402Of(task)['x402.payment.status'], 'payment-required');
        assert.equal((await testbed.income()) - earned, PRICE_UNITS);
      }
    });

    it('one of two payments at once completes the task', async () => {
      for (let round = 0; round < 5; round += 1) {
        const { id, payload, second } = await asked();
        const earned = await testbed.income();
        const answers = await Promise.all([payload, second].map((one) => post(base, paying(id, one))));
        const [longest = '', ...others] = answers.map(({ text }) => text).toSorted((a, b) => b.length - a.length);
        assert.ok(longest.includes('TASK_STATE_COMPLETED'), longest);
        assert.ok(others.every((text) => text.includes('TASK_NOT_FOUND')));
        assert.equal((await testbed.income()) - earned, PRICE_UNITS);
      }
    });

    it('a buyer that declines, once or twice, cancels the task, and no payment completes it', async () => {
      const { task: first, id, payload } = await asked();
      for (const _ of ['once', 'twice']) {
        const task = await send(base, declining(id));
        assert.deepEqual([task.id, task.contextId], [id, first.contextId]);
        assert.deepEqual([task.status.state, task.artifacts], ['TASK_STATE_CANCELED', undefined]);
        assert.deepEqual(x402Of(task), { 'x402.payment.status': 'payment-rejected' });
      }
      const { data, message: text } = await refused(paying(id, payload));
      assert.equal(data[0]?.reason, 'TASK_NOT_FOUND');
      assert.match(text, /declined/);
    });
  });

/** The A2A adapter in discovery. */
interface Described {
  readonly name: string;
  readonly capabilities: readonly string[];
  readonly unsupported: readonly string[];
}

describe('continuation that is not switched on', () => {
  let testbed: Testbed;
  let continued: TestGateway;
  before(async () => {
    testbed = await openTestbed({ overrides: ENABLED });
    const { chain, backend } = testbed;
    const facilitator = { mode: 'local' } as const;
    continued = await openGateway({ chain, backendUrl: backend.url, facilitator, overrides: CONTINUED });
  });
  after(async () => {
    await continued?.close();
    await testbed?.close();
  });
  const described = async (base: string): Promise<Described> => {
    const answer = await fetch(`${base}/.well-known/agent-commerce`);
    const { adapters } = (await answer.json()) as { readonly adapters: readonly Described[] };
    return adapters.find(({ name }) => name === 'a2a') ?? assert.fail('no A2A adapter');
  };

  it('a required payment ends the task, also when the request activates the extension', async () => {
    const answer = await post(testbed.gateway.url, message('market_report', CITY));
    assert.equal(answer.headers['a2a-extensions'], undefined, 'no extension is active');
    const task = taskOf(answer);
    assert.equal(task.status.state, 'TASK_STATE_FAILED');
    assert.equal(dataOf(task)['code'], 'PAYMENT_REQUIRED');
    assert.doesNotMatch(task.status.message?.parts[0].text ?? '', /taskId/);
  });

  it('a payment for a task that waits elsewhere is refused here, and buys as a message of its own', async () => {
    const asked = await call(continued.url);
    assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED');
    const ended = await call(testbed.gateway.url);
    const payload = decode(await testbed.buyer.pay(x402Of(ended)['x402.payment.required']));
    for (const id of [asked.id, ended.id]) {
      const error = errorOf(await post(testbed.gateway.url, paying(id, payload)), 1);
      assert.deepEqual([error.code, error.data[0]?.reason], [-32004, 'TASK_NOT_FOUND']);
    }
    assert.equal(await testbed.income(), 0n);
    const metadata = { 'x402.payment.payload': payload };
    const bought = await send(testbed.gateway.url, message('market_report', CITY, { metadata }));
    assert.equal(bought.status.state, 'TASK_STATE_COMPLETED');
  });

  it('discovery names it as unsupported, and as a capability where it is switched on', async () => {
    const [off, on] = [await described(testbed.gateway.url), await described(continued.url)];
    assert.ok(off.unsupported.includes('continuation') && !off.capabilities.includes('continuation'));
    assert.ok(on.capabilities.includes('continuation') && !on.unsupported.includes('continuation'));
  });
});
