import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Message, Role, type SendMessageRequest, type Task, TaskState } from '@a2a-js/sdk';
import { type Client, ClientFactory } from '@a2a-js/sdk/client';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequired } from '@x402/fetch';
import { type Buyer, createBuyer } from '../../support/buyer.ts';
import { type ConfigObject, writeConfig } from '../../support/config.ts';
import { type GatewayProcess, startGateway } from '../../support/gateway-process.ts';
import { freePorts } from '../../support/ports.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startWorld, type World } from '../../support/world.ts';
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
    world = await startWorld({ storage: { redis: { url: redis.url } }, overrides: ENABLED });
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
  /** A task that ended because it asks for a payment. */
  const challenged = async (): Promise<Task> => {
    const task = await ask(client, request(dataPart('market_report', CITY)));
    assert.deepEqual([task.status?.state, (dataOf(task) as Members)['code']], [FAILED, 'PAYMENT_REQUIRED']);
    return task;
  };
  const income = (): Promise<bigint> => world.chain.balanceOf(world.payTo);
  const paying = (payload: PaymentPayload): SendMessageRequest => {
    const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload };
    return request(dataPart('market_report', CITY), { metadata });
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
        const [bought, earned] = [await buyer.balance(), await income()];
        const asked = await challenged();
        const task = await ask(collector(), paid(await pay(asked)));
        assert.equal(task.status?.state, COMPLETED);
        assert.ok(task.id !== asked.id && task.contextId !== asked.contextId);
        assert.deepEqual(dataOf(task), REPORT);
        assert.equal(x402Of(task)['x402.payment.status'], 'payment-completed');
        assert.equal(bought - (await buyer.balance()), PRICE_UNITS);
        assert.equal((await income()) - earned, PRICE_UNITS);
      });

  it('the same payment at two gateways at once, as after a lost answer: paid once, run once', async () => {
    const sent = paying(await pay(await challenged()));
    const [earned, calls] = [await income(), world.backend.requests.length];
    const tasks = await Promise.all([ask(client, sent), ask(other, sent)]);
    assert.ok(tasks.some(({ status }) => status?.state === COMPLETED));
    assert.equal((await income()) - earned, PRICE_UNITS);
    assert.equal(world.backend.requests.length - calls, 1);
  });

  it('a payment buys at the other gateway after the gateway that asked for it is killed', async () => {
    const payload = await pay(await challenged());
    await world.gateway.kill();
    assert.equal((await ask(other, paying(payload))).status?.state, COMPLETED);
    await world.restartGateway();
  });

  it('without the store a call is asked for its payment, and the payment may be sent again', async () => {
    const payload = await pay(await challenged());
    await redis.kill();
    await challenged();
    const { code, retryable } = dataOf(await ask(other, paying(payload))) as Members;
    assert.deepEqual([code, retryable], ['STORAGE_ERROR', true]);
  });
});
