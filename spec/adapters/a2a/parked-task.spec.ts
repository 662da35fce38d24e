import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import {
  keyIdOf,
  MAX_SEALED_BYTES,
  openTask,
  parkedTasks,
  sealTask,
  taskKey,
  WAITS_MS,
} from '../../../src/adapters/a2a/parked-task.ts';
import type { TaskClaims } from '../../../src/payments/settlement/task-claims.ts';
import { decode } from '../../e2e/proofs.ts';
import { createBuyer } from '../../support/buyer.ts';
import { openSeller, type Seller } from '../../support/seller.ts';
import {
  ACTIVATED,
  CONTINUED,
  dataOf,
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

const CALL = { contextId: 'c', resourceId: 'market_report', input: { city: 'Berlin', nested: { list: [1, 'ü'] } } };
const KEY = taskKey('a secret that processes share');
const NOW = 1_800_000_000_000;
const sealed = (call = CALL, until = NOW + 1_000): string => sealTask(call, until, KEY) ?? assert.fail('too large');
const NO_CLAIMS: TaskClaims = {
  holder: async () => undefined,
  claim: async () => true,
  end: async () => undefined,
  decline: async () => true,
};

describe('the id of a task that waits', () => {
  it('says what was ordered to who has the key, and nothing to anybody else', () => {
    const id = sealed();
    assert.match(id, /^[A-Za-z0-9_-]+$/);
    assert.deepEqual(openTask(id, NOW, KEY)?.call, CALL);
    assert.equal(openTask(id, NOW, taskKey('another secret')), undefined);
    assert.ok(!Buffer.from(id, 'base64url').toString('latin1').includes('Berlin'));
    assert.ok(keyIdOf(id)?.equals(KEY.id));
  });

  it('is another one each time, each with a name of its own', () => {
    const ids = Array.from({ length: 50 }, () => sealed());
    assert.equal(new Set(ids).size, 50);
    assert.equal(new Set(ids.map((id) => openTask(id, NOW, KEY)?.name)).size, 50);
    assert.equal(openTask(ids[0] ?? '', NOW, KEY)?.name, openTask(ids[0] ?? '', NOW, KEY)?.name);
  });

  it('counts to the last millisecond of its time', () => {
    const id = sealed(CALL, NOW);
    assert.notEqual(openTask(id, NOW - 1, KEY), undefined);
    assert.equal(openTask(id, NOW, KEY), undefined);
  });

  it('is none when any bit of it is another', () => {
    const bytes = Buffer.from(sealed(), 'base64url');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.equal(openTask(changed.toString('base64url'), NOW, KEY), undefined, `byte ${at}`);
    }
  });

  it('has one spelling: another would be the same task under another name', () => {
    // Until the last character has unused bits.
    const id = Array.from({ length: 3 }, (_, n) => sealed({ ...CALL, contextId: 'c'.repeat(n + 1) })).find(
      (one) => one.length % 4 !== 0,
    );
    assert.ok(id !== undefined);
    const last = String.fromCharCode(id.charCodeAt(id.length - 1) + 1);
    for (const other of [`${id}=`, `${id}==`, `${id} `, `${id}A`, id.slice(0, -1), `${id.slice(0, -1)}${last}`, ''])
      assert.equal(openTask(other, NOW, KEY), undefined, other);
    assert.equal(openTask('x'.repeat(100_000), NOW, KEY), undefined);
  });

  it('has a bound, and a larger call has none', () => {
    const frame = JSON.stringify([NOW, CALL.contextId, CALL.resourceId, { text: '' }]);
    const text = 'a'.repeat(MAX_SEALED_BYTES - frame.length);
    const largest = sealTask({ ...CALL, input: { text } }, NOW, KEY);
    assert.ok(largest !== undefined && largest.length <= 5_600, `${largest?.length}`);
    assert.equal(sealTask({ ...CALL, input: { text: `${text}a` } }, NOW, KEY), undefined);
  });
});

describe('the secret under which ids are sealed', () => {
  /** A store that several processes share. */
  const shared = () => {
    const values = new Map<string, string>();
    let away = false;
    return {
      values,
      fail: (now: boolean) => {
        away = now;
      },
      agree: async (name: string, candidate: string) => {
        if (away) throw new Error('away');
        if (!values.has(name)) values.set(name, candidate);
        return values.get(name) ?? candidate;
      },
    };
  };

  it('is one for all processes, and a task of one is found by the others', async () => {
    const store = shared();
    const [one, other] = [parkedTasks(NO_CLAIMS, store), parkedTasks(NO_CLAIMS, store)];
    const id = (await one.park(CALL)) ?? assert.fail('not waiting');
    assert.deepEqual((await other.find(id))?.call, CALL);
    assert.equal(store.values.size, 1);
  });

  it('that the store lost is given back to it, or agreed upon anew', async () => {
    let now = NOW;
    const store = shared();
    const [one, other] = [parkedTasks(NO_CLAIMS, store, () => now), parkedTasks(NO_CLAIMS, store, () => now)];
    await one.park(CALL);
    await other.park(CALL);
    store.values.clear();
    now += 60_000;
    const id = (await one.park(CALL)) ?? assert.fail('not waiting');
    assert.deepEqual((await other.find(id))?.call, CALL);
    // Another process was there first, with a secret of its own.
    store.values.clear();
    const third = parkedTasks(NO_CLAIMS, store, () => now);
    const fresh = (await third.park(CALL)) ?? assert.fail('not waiting');
    now += 2_000;
    assert.deepEqual((await one.find(fresh))?.call, CALL, 'an unknown key is asked for');
  });

  it('stays good while the store is away; a process that never reached it asks for money in the plain flow', async () => {
    let now = NOW;
    const store = shared();
    const [one, late] = [parkedTasks(NO_CLAIMS, store, () => now), parkedTasks(NO_CLAIMS, store, () => now)];
    await one.park(CALL);
    store.fail(true);
    now += 60_000;
    assert.notEqual(await one.park(CALL), undefined);
    assert.equal(await late.park(CALL), undefined);
  });

  it('opens nothing after the time of a task', async () => {
    let now = NOW;
    const tasks = parkedTasks(NO_CLAIMS, shared(), () => now);
    const id = (await tasks.park(CALL)) ?? assert.fail('not waiting');
    now += WAITS_MS - 1;
    assert.notEqual(await tasks.find(id), undefined);
    now += 1;
    assert.equal(await tasks.find(id), undefined);
  });
});

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const REPORT = { ...CITY, currency: 'EUR', price: '12.50', volume: 340 };
const OLD_URI = 'https://github.com/google-a2a/a2a-x402/v0.1';

describe('a task that waits for its payment', () => {
  let seller: Seller;
  let base: string;
  before(async () => {
    seller = await openSeller({ overrides: CONTINUED });
    base = seller.shop.url;
  });
  after(() => seller?.close());

  const order = (resource = 'market_report', input: Members = CITY): Promise<Task> =>
    send(base, message(resource, input), ACTIVATED);
  const payloadFor = async (task: Task): Promise<object> =>
    decode(await seller.buyer.pay(x402Of(task)['x402.payment.required']));
  const post = (content: Members) => postA2a(base, sendMessage(content), { ...VERSION, ...ACTIVATED });
  const refused = async (content: Members) => errorOf(await post(content), 1);

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

  it('a message with its id, a text and a payment gets what was ordered, for exactly the price', async () => {
    const [bought, earned] = [await seller.buyer.balance(), await seller.income()];
    const asked = await order();
    const task = await send(base, paying(asked.id, await payloadFor(asked), { contextId: asked.contextId }));
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
    assert.deepEqual([task.id, task.contextId], [asked.id, asked.contextId]);
    assert.notEqual(task.metadata['agent-commerce/requestId'], asked.metadata['agent-commerce/requestId']);
    assert.deepEqual(dataOf(task), REPORT);
    assert.equal(x402Of(task)['x402.payment.status'], 'payment-completed');
    assert.equal(bought - (await seller.buyer.balance()), PRICE_UNITS);
    assert.equal((await seller.income()) - earned, PRICE_UNITS);
  });

  it('a free order has nothing to wait for', async () => {
    assert.equal((await order('cities', {})).status.state, 'TASK_STATE_COMPLETED');
  });

  it('an order that is too long to wait is asked for money in the plain flow', async () => {
    const task = await order('echo', { text: 'a'.repeat(17_000) });
    assert.equal(task.status.state, 'TASK_STATE_FAILED');
    assert.equal(dataOf(task)['code'], 'PAYMENT_REQUIRED');
  });

  it('a task that is not there is TASK_NOT_FOUND, and so is one that nothing is brought for', async () => {
    const asked = await order();
    const payload = await payloadFor(asked);
    for (const content of [
      paying(randomUUID(), payload),
      paying('constructor', payload),
      paying('x'.repeat(300), payload),
      message('market_report', CITY, { taskId: asked.id }),
    ]) {
      const error = await refused(content);
      assert.deepEqual([error.code, error.data[0]?.reason], [-32004, 'TASK_NOT_FOUND']);
    }
    assert.equal((await send(base, paying(asked.id, payload))).status.state, 'TASK_STATE_COMPLETED');
  });

  it('another context than that of the task is a bad parameter, and the task goes on waiting', async () => {
    const asked = await order();
    const payload = await payloadFor(asked);
    const error = await refused(paying(asked.id, payload, { contextId: randomUUID() }));
    assert.deepEqual([error.code, error.data[0]?.fieldViolations?.[0]?.field], [-32602, 'message.contextId']);
    assert.equal((await send(base, paying(asked.id, payload))).status.state, 'TASK_STATE_COMPLETED');
  });

  it('a payment that is refused leaves the task waiting, with a fresh challenge', async () => {
    const poor = await createBuyer(seller.chain, 0n);
    const asked = await order();
    const empty = decode(await poor.pay(x402Of(asked)['x402.payment.required']));
    const again = await send(base, paying(asked.id, empty));
    assert.deepEqual([again.id, again.status.state], [asked.id, 'TASK_STATE_INPUT_REQUIRED']);
    assert.equal(x402Of(again)['x402.payment.error'], 'INSUFFICIENT_FUNDS');
    const task = await send(base, paying(asked.id, await payloadFor(again)));
    assert.deepEqual([task.id, task.status.state], [asked.id, 'TASK_STATE_COMPLETED']);
  });

  it('a merchant that fails leaves the task open for the same payment, and for no other', async () => {
    const earned = await seller.income();
    const asked = await order('flaky', { failures: 1 });
    const [payload, second] = [await payloadFor(asked), await payloadFor(asked)];
    const failed = await send(base, paying(asked.id, payload));
    assert.deepEqual([failed.id, failed.status.state], [asked.id, 'TASK_STATE_INPUT_REQUIRED']);
    assert.deepEqual([dataOf(failed)['code'], dataOf(failed)['retryable']], ['BACKEND_ERROR', true]);
    assert.equal(x402Of(failed)['x402.payment.status'], 'payment-completed', 'nobody is asked to sign again');
    assert.equal((await refused(paying(asked.id, second))).data[0]?.reason, 'TASK_NOT_FOUND');
    assert.equal((await refused(declining(asked.id))).data[0]?.reason, 'TASK_NOT_CANCELABLE');
    const task = await send(base, paying(asked.id, payload));
    assert.deepEqual([task.id, task.status.state], [asked.id, 'TASK_STATE_COMPLETED']);
    assert.equal((await seller.income()) - earned, 1_000n, 'paid once');
  });

  it('a task that was paid takes no second payment', async () => {
    const asked = await order();
    const [payload, second] = [await payloadFor(asked), await payloadFor(asked)];
    assert.equal((await send(base, paying(asked.id, payload))).status.state, 'TASK_STATE_COMPLETED');
    const earned = await seller.income();
    assert.equal((await refused(paying(asked.id, second))).data[0]?.reason, 'TASK_NOT_FOUND');
    assert.equal(await seller.income(), earned);
  });

  it('the same message again gets its answer again, under the same task: paid once, run once', async () => {
    const asked = await order();
    const sent = paying(asked.id, await payloadFor(asked));
    const [earned, calls] = [await seller.income(), seller.merchant.requests.length];
    const [first, again] = [await send(base, sent), await send(base, sent)];
    assert.deepEqual([again.id, dataOf(again)], [first.id, dataOf(first)]);
    assert.deepEqual([again.status.state, replayed(first), replayed(again)], ['TASK_STATE_COMPLETED', undefined, true]);
    assert.equal((await seller.income()) - earned, PRICE_UNITS);
    assert.equal(seller.merchant.requests.length - calls, 1);
  });

  it('a buyer who declines cancels the task: there is nothing to pay for any more', async () => {
    const asked = await order();
    const payload = await payloadFor(asked);
    const task = await send(base, declining(asked.id));
    assert.deepEqual([task.id, task.contextId], [asked.id, asked.contextId]);
    assert.equal(task.status.state, 'TASK_STATE_CANCELED');
    assert.equal(task.artifacts, undefined);
    assert.deepEqual(x402Of(task), { 'x402.payment.status': 'payment-rejected' });
    assert.equal((await refused(paying(asked.id, payload))).data[0]?.reason, 'TASK_NOT_FOUND');
  });

  it('of two payments at once one is taken', async () => {
    for (let round = 0; round < 5; round += 1) {
      const asked = await order();
      const payloads = [await payloadFor(asked), await payloadFor(asked)];
      const earned = await seller.income();
      const answers = await Promise.all(payloads.map((payload) => post(paying(asked.id, payload))));
      const [taken = '', ...others] = answers.map(({ text }) => text).toSorted((a, b) => b.length - a.length);
      assert.ok(taken.includes('TASK_STATE_COMPLETED'), taken);
      assert.ok(others.every((text) => text.includes('TASK_NOT_FOUND')));
      assert.equal((await seller.income()) - earned, PRICE_UNITS);
    }
  });
});

function replayed({ metadata }: Task): unknown {
  return (metadata['agent-commerce/delivery'] as Members)['replayed'];
}

function declining(taskId: string): Members {
  const metadata = { 'x402.payment.status': 'payment-rejected' };
  return { messageId: randomUUID(), role: 'ROLE_USER', taskId, parts: [{ text: 'No.' }], metadata };
}
