import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Message, Role, type SendMessageRequest, type Task, TaskState } from '@a2a-js/sdk';
import { type Client, ClientFactory, ServiceParameters, withA2AExtensions } from '@a2a-js/sdk/client';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequired } from '@x402/fetch';
import { type Buyer, createBuyer } from '../../support/buyer.ts';
import { type ConfigObject, writeConfig } from '../../support/config.ts';
import { type GatewayProcess, startGateway } from '../../support/gateway-process.ts';
import { freePorts } from '../../support/ports.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startWorld, type World } from '../../support/world.ts';
import { CONTINUED, type Members, X402_URI } from './post.ts';

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const REPORT = { ...CITY, currency: 'EUR', price: '12.50', volume: 340 };
const ACTIVATED = { serviceParameters: ServiceParameters.create(withA2AExtensions(X402_URI)) };

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
async function ask(client: Client, sent: SendMessageRequest, options = {}): Promise<Task> {
  const result = await client.sendMessage(sent, options);
  assert.ok('artifacts' in result, 'the answer is a task');
  assert.deepEqual(result.history, []);
  return result;
}

function dataOf({ artifacts }: Task): unknown {
  const content = artifacts[0]?.parts[0]?.content;
  assert.equal(content?.$case, 'data');
  return content.value;
}

const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const x402Of = (task: Task): Members => task.status?.message?.metadata ?? {};

/** A second gateway with the same configuration, over the same store. */
async function startSibling(world: World): Promise<GatewayProcess> {
  const [agents = 0, management = 0] = await freePorts(2);
  const { server, management: probes } = world.config as { server: ConfigObject; management: ConfigObject };
  const configPath = join(dirname(world.configPath), 'sibling.yaml');
  const config = {
    ...world.config,
    server: { ...server, port: agents },
    management: { ...probes, port: management },
  };
  await writeConfig(configPath, config);
  return startGateway({ configPath, baseUrl: `http://127.0.0.1:${agents}`, env: { GATEWAY_DRAIN_SECONDS: '0' } });
}

describe('the official A2A client, and two gateways over one Redis', () => {
  let redis: TestRedis;
  let world: World;
  let sibling: GatewayProcess;
  let buyer: Buyer;
  let client: Client;
  /** The same client, connected to the other gateway. */
  let other: Client;

  before(async () => {
    redis = await startRedis();
    world = await startWorld({ storage: { redis: { url: redis.url } }, overrides: CONTINUED });
    sibling = await startSibling(world);
    buyer = await createBuyer(world.chain);
    client = await new ClientFactory().createFromUrl(world.gateway.baseUrl);
    const card = await client.getAgentCard();
    const [at] = card.supportedInterfaces;
    assert.ok(at);
    const supportedInterfaces = [{ ...at, url: `${sibling.baseUrl}/a2a` }];
    other = await new ClientFactory().createFromAgentCard({ ...card, supportedInterfaces });
  });
  after(async () => {
    await sibling?.stop();
    await world?.stop();
    await redis?.stop();
  });

  const pay = (task: Task): Promise<PaymentPayload> =>
    buyer.client.createPaymentPayload(x402Of(task)['x402.payment.required'] as PaymentRequired);
  const income = (): Promise<bigint> => world.chain.balanceOf(world.payTo);
  const paying = (task: Task, payload: PaymentPayload): SendMessageRequest => {
    const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload };
    return request(textPart('Here is the payment.'), { taskId: task.id, contextId: task.contextId, metadata });
  };

  it('lists the skills with their prices, from either spelling of the base URL', async () => {
    const { skills } = await client.getAgentCard();
    const report = skills.find(({ id }) => id === 'market_report');
    assert.match(report?.description ?? '', /Costs 0\.01 TUSD per call\.$/);
    assert.deepEqual(report?.tags, ['agent-commerce', 'paid']);
    for (const base of [`${world.gateway.baseUrl}/a2a`, `${world.gateway.baseUrl}/a2a/`]) {
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
    assert.equal(task.status?.state, TaskState.TASK_STATE_FAILED);
    assert.equal((dataOf(task) as Members)['code'], 'RESOURCE_NOT_FOUND');
  });

  const ways: Readonly<Record<string, (asked: Task, payload: PaymentPayload) => SendMessageRequest>> = {
    'in the input, as base64': (_, payload) =>
      request(dataPart('market_report', { ...CITY, _payment: encodePaymentSignatureHeader(payload) })),
    'in the metadata of a message that repeats the call': (_, payload) =>
      request(dataPart('market_report', CITY), { metadata: { 'x402.payment.payload': payload } }),
    'for the task that waits': paying,
  };
  for (const [way, paid] of Object.entries(ways))
    for (const [where, collector] of [
      ['the same gateway', () => client],
      ['the other gateway', () => other],
    ] as const)
      it(`pays ${way}, to ${where}: receives, and balances move by exactly the price`, async () => {
        const options = way === 'for the task that waits' ? ACTIVATED : {};
        const [bought, earned] = [await buyer.balance(), await income()];
        const asked = await ask(client, request(dataPart('market_report', CITY)), options);
        const { TASK_STATE_FAILED, TASK_STATE_INPUT_REQUIRED } = TaskState;
        assert.equal(asked.status?.state, options === ACTIVATED ? TASK_STATE_INPUT_REQUIRED : TASK_STATE_FAILED);
        const task = await ask(collector(), paid(asked, await pay(asked)), options);
        assert.equal(task.status?.state, COMPLETED);
        assert.equal(task.id === asked.id && task.contextId === asked.contextId, options === ACTIVATED);
        assert.deepEqual(dataOf(task), REPORT);
        assert.equal(x402Of(task)['x402.payment.status'], 'payment-completed');
        assert.equal(bought - (await buyer.balance()), PRICE_UNITS);
        assert.equal((await income()) - earned, PRICE_UNITS);
      });

  it('two payments for one task at two gateways at once: exactly one runs', async () => {
    for (let round = 0; round < 5; round += 1) {
      const asked = await ask(client, request(dataPart('market_report', CITY)), ACTIVATED);
      const [one, second] = [paying(asked, await pay(asked)), paying(asked, await pay(asked))];
      const [earned, calls] = [await income(), world.backend.requests.length];
      const answers = await Promise.allSettled([ask(client, one, ACTIVATED), ask(other, second, ACTIVATED)]);
      const taken = answers.filter((answer) => answer.status === 'fulfilled');
      assert.equal(taken.length, 1);
      assert.equal(taken[0]?.value.status?.state, COMPLETED);
      assert.equal((await income()) - earned, PRICE_UNITS);
      assert.equal(world.backend.requests.length - calls, 1);
    }
  });

  it('the same payment at two gateways at once, as after a lost answer: paid once, run once', async () => {
    const asked = await ask(client, request(dataPart('market_report', CITY)), ACTIVATED);
    const sent = paying(asked, await pay(asked));
    const [earned, calls] = [await income(), world.backend.requests.length];
    const answers = await Promise.allSettled([ask(client, sent, ACTIVATED), ask(other, sent, ACTIVATED)]);
    assert.ok(answers.some((answer) => answer.status === 'fulfilled' && answer.value.status?.state === COMPLETED));
    assert.equal((await income()) - earned, PRICE_UNITS);
    assert.equal(world.backend.requests.length - calls, 1);
  });

  it('a task waits on after the gateway that asked is killed', async () => {
    const asked = await ask(client, request(dataPart('market_report', CITY)), ACTIVATED);
    await world.gateway.kill();
    const task = await ask(other, paying(asked, await pay(asked)), ACTIVATED);
    assert.equal(task.status?.state, COMPLETED);
    await world.restartGateway();
  });

  it('without the store a call still waits, and a payment may be sent again', async () => {
    const asked = await ask(client, request(dataPart('market_report', CITY)), ACTIVATED);
    await redis.kill();
    const meanwhile = await ask(other, request(dataPart('market_report', CITY)), ACTIVATED);
    assert.equal(meanwhile.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    assert.equal((dataOf(meanwhile) as Members)['code'], 'PAYMENT_REQUIRED');
    const payload = await pay(asked);
    const failed = await ask(other, paying(asked, payload), ACTIVATED);
    // The task stays: this payment may be on its way, and after a failure a client signs another.
    assert.deepEqual([failed.id, failed.status?.state], [asked.id, TaskState.TASK_STATE_INPUT_REQUIRED]);
    const { code, retryable } = dataOf(failed) as Members;
    assert.deepEqual([code, retryable], ['STORAGE_ERROR', true]);
  });
});
