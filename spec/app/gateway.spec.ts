import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { Request, Response } from 'express';
import { NO_CHAIN } from '../support/config.ts';
import { OPERATOR_TOKEN, openGateway, type TestGateway } from '../support/gateway.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

const FINISHED = 'http.server.response.finish';

describe('a paid call by its exact path', () => {
  let testbed: Testbed;
  const seen: { url: string; route: unknown; logged: boolean }[] = [];
  const note = (message: unknown): void => {
    const { request, response } = message as { request: Request; response: Response & { log?: object } };
    seen.push({ url: request.originalUrl, route: String(request.route?.path), logged: response.log !== undefined });
  };
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed?.close());

  it('passes the router of Express and pino-http, and has one line in the log', async () => {
    const { gateway } = testbed;
    const input = { city: 'Berlin' };
    const proof = await testbed.proof('market_report', input);
    const before = gateway.logLines.length;
    subscribe(FINISHED, note);
    const answer = await gateway.invoke('market_report', input, { 'payment-signature': proof });
    unsubscribe(FINISHED, note);
    assert.equal(answer.status, 200, await answer.text());
    const url = '/api/resources/market_report/invoke';
    assert.deepEqual(
      seen.filter((request) => request.url === url),
      [{ url, route: String(/^\/api\/resources\/(?<id>[^/]+)\/invoke$/), logged: true }],
    );
    const lines = gateway.logLines.slice(before).map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    const completed = lines.filter(({ msg }) => msg === 'request completed');
    assert.deepEqual(
      completed.map(({ path, status, outcome }) => ({ path, status, outcome })),
      [{ path: url, status: 200, outcome: 'delivered' }],
    );
  });
});

const NEXT_TOKEN = 'the-next-operator-token-of-the-tests';
const MCP = { protocols: { mcp: { enabled: true }, a2a: { enabled: true } } };

describe('a gateway whose configuration is replaced', () => {
  let backend: SampleBackend;
  let gateway: TestGateway;
  const open = async (overrides: object): Promise<void> => {
    gateway = await openGateway({
      ...{ chain: NO_CHAIN, backendUrl: backend.url, facilitator: { mode: 'remote', url: 'http://127.0.0.1:1' } },
      overrides: { payments: { x402: { rpcUrl: undefined } }, ...overrides },
    });
  };
  beforeEach(async () => {
    backend = await startSampleBackend();
  });
  afterEach(async () => {
    await gateway?.close();
    await backend?.stop();
  });
  const operator = async (token: string): Promise<number> => {
    const answer = await fetch(`${gateway.url}/api/events`, { headers: { authorization: `Bearer ${token}` } });
    await answer.text();
    return answer.status;
  };
  const textOf = async (path: string): Promise<string> => (await fetch(`${gateway.url}${path}`)).text();
  const priced = (amount: string) => ({ resources: { market_report: { pricing: { amount } } } });

  it('shows new prices in the list, the discovery document and the challenge, at once', async () => {
    await open({});
    const etag = (await fetch(`${gateway.url}/api/resources`)).headers.get('etag');
    gateway.reload(priced('0.07'));
    const list = await fetch(`${gateway.url}/api/resources`);
    assert.notEqual(list.headers.get('etag'), etag);
    assert.match(await list.text(), /"0\.07"/);
    const challenge = await gateway.invoke('market_report', { city: 'Berlin' });
    assert.equal(challenge.status, 402);
    assert.match(await challenge.text(), /"70000"/);
  });

  it('lists new tools and skills', async () => {
    await open(MCP);
    assert.doesNotMatch(await textOf('/.well-known/agent-card.json'), /Another name/);
    const named = { name: 'Another name', expose: ['http', 'mcp', 'a2a'] };
    gateway.reload({ ...MCP, resources: { free_greeting: named } });
    assert.match(await textOf('/.well-known/agent-card.json'), /Another name/);
    const tools = await fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
    assert.match(await tools.text(), /Another name/);
  });

  it('ends a call that is in flight as it began, and refuses the next one', async () => {
    await open({});
    const running = await gateway.invoke('free_slow', { chunks: 20, everyMs: 20 });
    gateway.reload({ resources: { free_slow: undefined } });
    assert.equal((await gateway.invoke('free_slow', { chunks: 1, everyMs: 1 })).status, 404);
    assert.equal(running.status, 200);
    assert.ok((await running.text()).length > 0, 'to its end');
  });

  it('ends the event streams of an operator token that is taken back', async () => {
    await open({});
    const opened = await fetch(`${gateway.url}/api/events/stream`, {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, accept: 'text/event-stream' },
    });
    assert.equal(opened.status, 200);
    gateway.reload(priced('0.07'));
    gateway.reload({ server: { adminToken: NEXT_TOKEN } });
    // It ends: the stream of a token that stays would not.
    assert.match(await opened.text(), /^:/);
  });

  it('accepts the new operator token and not the one before, and goes on counting wrong ones', async () => {
    await open({});
    for (let n = 0; n < 10; n += 1) assert.equal(await operator('a-wrong-operator-token'), 401);
    assert.equal(await operator('a-wrong-operator-token'), 429);
    assert.equal(await operator(OPERATOR_TOKEN), 200);
    gateway.reload({ server: { adminToken: NEXT_TOKEN } });
    assert.equal(await operator('a-wrong-operator-token'), 429, 'what was counted stays counted');
    assert.equal(await operator(NEXT_TOKEN), 200);
    assert.equal(await operator(OPERATOR_TOKEN), 429, 'it is a wrong one now');
  });

  it('goes on counting calls under a changed rate', async () => {
    const rate = (burst: number) => ({ limits: { rate: { perSecond: 1, burst } } });
    await open(rate(100));
    for (let n = 0; n < 20; n += 1) assert.equal((await gateway.invoke('cities')).status, 200);
    gateway.reload(rate(120));
    const { headers } = await gateway.invoke('cities');
    assert.match(headers.get('ratelimit-policy') ?? '', /q=120/);
    // One comes back each second, so that a slow machine has some more left.
    assert.ok(Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]) < 110, 'what was used stays used');
    gateway.reload({ limits: {} });
    assert.equal((await gateway.invoke('cities')).headers.get('ratelimit'), null);
  });

  it('keeps what it uses when the next one cannot be made', async () => {
    await open({});
    const before = await textOf('/api/resources');
    const broken = { backend: { method: 'GET', path: '/reports/{nothing}' } };
    assert.throws(() => gateway.reload({ resources: { market_report: broken } }));
    assert.equal(await textOf('/api/resources'), before);
  });

  it('tells when it was loaded', async () => {
    await open({});
    const loaded = async (): Promise<number> => {
      const metrics = await readMetrics(gateway.managementUrl);
      return Number(/^acg_config_loaded_timestamp_seconds ([\d.e+]+)/m.exec(metrics)?.[1]);
    };
    const before = await loaded();
    while (Date.now() / 1_000 <= before) await new Promise(setImmediate);
    gateway.reload(priced('0.09'));
    assert.ok((await loaded()) > before);
  });
});
