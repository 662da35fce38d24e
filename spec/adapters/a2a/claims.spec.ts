import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { MAX_SEALED_BYTES } from '../../../src/adapters/a2a/parked-task.ts';
import { decode } from '../../e2e/proofs.ts';
import { startRedis } from '../../support/redis.ts';
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
  x402Of,
} from './post.ts';

const CITY = { city: 'Berlin' };

describe('who pays for a task that waits', () => {
  let redis: Awaited<ReturnType<typeof startRedis>>;
  let seller: Seller;
  let base: string;
  before(async () => {
    redis = await startRedis();
    const storage = { redis: { url: redis.url } };
    seller = await openSeller({ storage, overrides: CONTINUED });
    base = seller.shop.url;
  });
  after(async () => {
    await seller?.close();
    await redis?.stop();
  });

  const order = (resource = 'market_report', input: Members = CITY): Promise<Task> =>
    send(base, message(resource, input), ACTIVATED);
  const payloadFor = async (task: Task): Promise<Members> =>
    decode(await seller.buyer.pay(x402Of(task)['x402.payment.required'])) as Members;
  const refused = async (content: Members) =>
    errorOf(await postA2a(base, sendMessage(content), { ...VERSION, ...ACTIVATED }), 1);

  it('may send his message three times at once: nobody tells him that his task is gone', async () => {
    for (let round = 0; round < 5; round += 1) {
      const asked = await order();
      const sent = paying(asked.id, await payloadFor(asked));
      const earned = await seller.income();
      const tasks = await Promise.all([send(base, sent), send(base, sent), send(base, sent)]);
      for (const task of tasks) assert.equal(task.id, asked.id);
      assert.ok(tasks.some(({ status }) => status.state === 'TASK_STATE_COMPLETED'));
      for (const task of tasks)
        if (task.status.state !== 'TASK_STATE_COMPLETED')
          assert.notEqual(x402Of(task)['x402.payment.status'], 'payment-required');
      assert.equal((await seller.income()) - earned, 10_000n);
    }
  });

  it('has it for himself, also after he sent his payment damaged', async () => {
    const asked = await order();
    const [payload, second] = [await payloadFor(asked), await payloadFor(asked)];
    assert.equal((await send(base, paying(asked.id, payload))).status.state, 'TASK_STATE_COMPLETED');
    const damaged = { ...payload, payload: { ...(payload['payload'] as Members), signature: `0x${'11'.repeat(65)}` } };
    const repeated = await send(base, paying(asked.id, damaged));
    assert.notEqual(repeated.status.state, 'TASK_STATE_INPUT_REQUIRED');
    const earned = await seller.income();
    assert.equal((await refused(paying(asked.id, second))).data[0]?.reason, 'TASK_NOT_FOUND');
    assert.equal(await seller.income(), earned);
  });

  it('gives it back with a payment that can never pay, readable or not', async () => {
    const asked = await order();
    for (const worthless of [{ x402Version: 2 }, 'bm9uZQ==', { ...(await payloadFor(asked)), x402Version: 3 }]) {
      const task = await send(base, paying(asked.id, worthless));
      assert.deepEqual([task.id, task.status.state], [asked.id, 'TASK_STATE_INPUT_REQUIRED']);
    }
    assert.equal((await send(base, paying(asked.id, await payloadFor(asked)))).status.state, 'TASK_STATE_COMPLETED');
  });

  it('is told when his payment belongs to another call, and may bring one that does not', async () => {
    const asked = await order();
    const spent = await payloadFor(asked);
    const elsewhere = message('market_report', { city: 'Lisboa' }, { metadata: { 'x402.payment.payload': spent } });
    assert.equal((await send(base, elsewhere)).status.state, 'TASK_STATE_COMPLETED');
    const told = await send(base, paying(asked.id, spent));
    assert.deepEqual([told.status.state, dataOf(told)['code']], ['TASK_STATE_INPUT_REQUIRED', 'PAYMENT_REPLAYED']);
    assert.equal((await send(base, paying(asked.id, await payloadFor(asked)))).status.state, 'TASK_STATE_COMPLETED');
  });

  it('with a key that is none has brought nothing', async () => {
    const asked = await order();
    const payload = await payloadFor(asked);
    const bad = { ...VERSION, ...ACTIVATED, 'idempotency-key': 'x'.repeat(256) };
    const told = taskOf(await postA2a(base, sendMessage(paying(asked.id, payload)), bad));
    assert.deepEqual([told.status.state, dataOf(told)['code']], ['TASK_STATE_INPUT_REQUIRED', 'INPUT_INVALID']);
    assert.equal((await send(base, paying(asked.id, await payloadFor(asked)))).status.state, 'TASK_STATE_COMPLETED');
  });

  it('may decline twice, and then nobody pays for it', async () => {
    const asked = await order();
    const payload = await payloadFor(asked);
    const declining = { ...paying(asked.id, undefined), metadata: { 'x402.payment.status': 'payment-rejected' } };
    for (const _ of ['once', 'twice']) assert.equal((await send(base, declining)).status.state, 'TASK_STATE_CANCELED');
    assert.match((await refused(paying(asked.id, payload))).message, /declined/);
  });

  it('may say again what he ordered, and nothing else', async () => {
    const asked = await order();
    const payload = await payloadFor(asked);
    const saying = (resource: string, input: Members): Members =>
      paying(asked.id, payload, { parts: [{ data: { resource, input } }] });
    for (const other of [saying('price_list', {}), saying('market_report', { city: 'Lisboa' })])
      assert.deepEqual((await refused(other)).data[0]?.fieldViolations?.[0]?.field, 'message.parts[0].data');
    const task = await send(base, saying('market_report', { ...CITY, _authorization: '' }));
    assert.equal(dataOf(task)['city'], 'Berlin');
  });

  it('may have ordered as much as can wait at all, and asks again all the same', async () => {
    const frame = JSON.stringify([Date.now(), '0'.repeat(36), 'echo', { text: '' }]);
    const asked = await order('echo', { text: 'a'.repeat(MAX_SEALED_BYTES - frame.length) });
    assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED');
    const sent = paying(asked.id, await payloadFor(asked));
    for (const _ of ['first', 'again']) assert.equal((await send(base, sent)).status.state, 'TASK_STATE_COMPLETED');
  });

  it('hears what to do when his task is not there', async () => {
    const error = await refused(
      paying('0c5cbf1c-52a2-4a4b-a4ee-1f9a1c9e7a53', await payloadFor(await order('echo', {}))),
    );
    assert.match(error.message, /send the order again with the same payment/);
  });
});
