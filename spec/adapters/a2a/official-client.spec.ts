import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type Message, Role, type SendMessageRequest, type Task, TaskState } from '@a2a-js/sdk';
import { type Client, ClientFactory } from '@a2a-js/sdk/client';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequired } from '@x402/fetch';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { ENABLED, type Members } from './post.ts';

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const REPORT = { ...CITY, currency: 'EUR', price: '12.50', volume: 340 };

type Part = Message['parts'][number];
const dataPart = (resource: string, input: object): Part => ({
  content: { $case: 'data', value: { resource, input } },
  ...{ mediaType: 'application/json', filename: '', metadata: undefined },
});
const textPart = (text: string): Part => ({
  content: { $case: 'text', value: text },
  ...{ mediaType: '', filename: '', metadata: undefined },
});

function request(part: Part, changes: Partial<Message> = {}): SendMessageRequest {
  const unused = { contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined };
  const message = { messageId: randomUUID(), role: Role.ROLE_USER, parts: [part], ...unused, ...changes };
  return { tenant: '', message, configuration: undefined, metadata: undefined };
}

/** Sends with the official client, whose answer must be a task. */
async function ask(client: Client, sent: SendMessageRequest): Promise<Task> {
  const result = await client.sendMessage(sent);
  assert.ok('artifacts' in result, 'the answer is a task');
  assert.deepEqual(result.history, []);
  return result;
}

function dataOf({ artifacts }: Task): unknown {
  const content = artifacts[0]?.parts[0]?.content;
  assert.equal(content?.$case, 'data');
  return content.value;
}

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;
const x402Of = (task: Task): Members => task.status?.message?.metadata ?? {};

describe('the official A2A client, and two gateways over one Redis', () => {
  let redis: TestRedis;
  let testbed: Testbed;
  let sibling: TestGateway;
  let client: Client;
  /** The same client, connected to the other gateway. */
  let other: Client;

  before(async () => {
    redis = await startRedis();
    const shared = { storage: { redis: { url: redis.url } }, overrides: ENABLED };
    testbed = await openTestbed(shared);
    const { chain, backend, gateway } = testbed;
    const payTo = gateway.config.x402?.payTo ?? '';
    sibling = await openGateway({ ...shared, chain, payTo, backendUrl: backend.url, facilitator: { mode: 'local' } });
    const card = await (await new ClientFactory().createFromUrl(gateway.url)).getAgentCard();
    const connected = async (url: string): Promise<Client> => {
      const supportedInterfaces = card.supportedInterfaces.map((at) => ({ ...at, url: `${url}/a2a` }));
      return new ClientFactory().createFromAgentCard({ ...card, supportedInterfaces });
    };
    [client, other] = [await connected(gateway.url), await connected(sibling.url)];
  });
  after(async () => {
    await sibling?.close();
    await testbed?.close();
    await redis?.stop();
  });

  const pay = (task: Task): Promise<PaymentPayload> =>
    testbed.buyer.client.createPaymentPayload(x402Of(task)['x402.payment.required'] as PaymentRequired);
  /** A task that ended because it asks for a payment. */
  const challenged = async (): Promise<Task> => {
    const task = await ask(client, request(dataPart('market_report', CITY)));
    assert.deepEqual([task.status?.state, (dataOf(task) as Members)['code']], [FAILED, 'PAYMENT_REQUIRED']);
    return task;
  };
  const paying = (payload: PaymentPayload): SendMessageRequest => {
    const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload };
    return request(dataPart('market_report', CITY), { metadata });
  };

  it('lists the skills with their prices, from either spelling of the base URL', async () => {
    const { skills } = await client.getAgentCard();
    const report = skills.find(({ id }) => id === 'market_report');
    assert.match(report?.description ?? '', /Costs 0\.01 TUSD per call\.$/);
    assert.deepEqual(report?.tags, ['agent-commerce', 'paid']);
    for (const base of [`${testbed.gateway.url}/a2a`, `${testbed.gateway.url}/a2a/`]) {
      const card = await (await new ClientFactory().createFromUrl(base)).getAgentCard();
      assert.equal(card.skills.length, skills.length);
    }
  });

  it('calls a free skill, also by its streaming method, which the card does not offer', async () => {
    const task = await ask(client, request(dataPart('cities', {})));
    assert.equal(task.status?.state, COMPLETED);
    assert.deepEqual(dataOf(task), { cities: ['Berlin', 'Lisboa', 'São Paulo'] });
    const kinds: (string | undefined)[] = [];
    for await (const { payload } of client.sendMessageStream(request(dataPart('cities', {}))))
      kinds.push(payload?.$case);
    assert.deepEqual(kinds, ['task']);
  });

  it('gets an error for what is not served, and a task for a failed call', async () => {
    await assert.rejects(client.getTask({ id: randomUUID(), tenant: '', historyLength: undefined }));
    await assert.rejects(client.sendMessage(request(textPart('Berlin, please'))));
    const task = await ask(client, request(dataPart('nowhere', {})));
    assert.equal(task.status?.state, FAILED);
    assert.equal((dataOf(task) as Members)['code'], 'RESOURCE_NOT_FOUND');
  });

  const ways: Readonly<Record<string, (payload: PaymentPayload) => SendMessageRequest>> = {
    'in the input, as base64': (payload) =>
      request(dataPart('market_report', { ...CITY, _payment: encodePaymentSignatureHeader(payload) })),
    'in the metadata of a message that repeats the call': paying,
  };
  for (const [way, paid] of Object.entries(ways))
    for (const [where, collector] of [
      ['the same gateway', () => client],
      ['the other gateway', () => other],
    ] as const)
      it(`pays ${way}, to ${where}: receives, and balances move by exactly the price`, async () => {
        const [bought, earned] = [await testbed.buyer.balance(), await testbed.income()];
        const asked = await challenged();
        const task = await ask(collector(), paid(await pay(asked)));
        assert.equal(task.status?.state, COMPLETED);
        assert.ok(task.id !== asked.id && task.contextId !== asked.contextId);
        assert.deepEqual(dataOf(task), REPORT);
        assert.equal(x402Of(task)['x402.payment.status'], 'payment-completed');
        assert.equal(bought - (await testbed.buyer.balance()), PRICE_UNITS);
        assert.equal((await testbed.income()) - earned, PRICE_UNITS);
      });
});
