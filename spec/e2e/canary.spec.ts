import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { OPERATOR_TOKEN, openGateway, type TestGateway } from '../support/gateway.ts';
import { answerJson, resetConnection, serveHttp } from '../support/http-server.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { route, type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { everythingIn, found, type Sinks } from './canary-sinks.ts';

/** Planted secrets, each where the gateway reads it. None may come out. */
const CANARIES = {
  'the operator token': OPERATOR_TOKEN,
  'the next operator token': 'canary-next-operator-token-7f1e',
  'the bearer of the facilitator': 'canary-facilitator-bearer-91c2',
  'the key in the URL of the facilitator': 'canary-facilitator-path-key-3d',
  'the key in the URL of the chain node': 'canary-chain-node-path-key-84',
  'the password of Redis': 'canary-redis-password-5b9a0c',
  "the merchant's API key": 'canary-merchant-api-key-c04f',
  "an agent's Authorization": 'canary-agent-authorization-2e',
  "an agent's mandate": 'canary-agent-mandate-6a77d1',
  "an agent's cookie": 'canary-agent-cookie-b83e',
  'an idempotency key': 'canary-idempotency-key-1f20e9',
  'a token in a query': 'canary-token-in-a-query-d5',
  'a secret in a broken body': 'canary-in-a-broken-body-90',
  'a secret in a refused input': 'canary-in-a-refused-input-4c',
  'a proof that is none': 'canary-as-a-proof-that-is-none',
  "a secret in the merchant's failure": 'canary-in-the-merchants-failure',
  "a secret in the merchant's redirect": 'canary-in-the-merchants-redirect',
} as const;
/**
 * Names that an agent makes up. Its own answers hold them, and the path in the log; nothing else
 * does.
 */
const NAMES = {
  'the name of a resource': 'canary-as-a-resource-name-7b',
  'the name of a member': 'canary-as-a-member-name-e1',
} as const;
const TOOL = 'market_report';
const INPUT = { city: 'Berlin' };

type Channel = 'http' | 'mcp' | 'a2a';
const CHANNELS: readonly Channel[] = ['http', 'mcp', 'a2a'];

/** An agent that sends secrets in every possible field and keeps all answers. */
function canaryAgent(buyer: Buyer) {
  /** Everything that was answered, heads and bodies. */
  const answers: string[] = [];
  /** Signatures and ends of the proofs that were sent. */
  const proofs: string[] = [];

  const headers = {
    'content-type': 'application/json',
    'a2a-version': '1.0',
    authorization: `Bearer ${CANARIES["an agent's Authorization"]}`,
    'agent-authorization': CANARIES["an agent's mandate"],
    cookie: `session=${CANARIES["an agent's cookie"]}`,
  };
  const KEY = { 'idempotency-key': CANARIES['an idempotency key'] };
  const sent = async (
    gateway: TestGateway,
    path: string,
    body?: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<string> => {
    const request = body === undefined ? {} : { method: 'POST', body };
    const answer = await fetch(`${gateway.url}${path}`, {
      ...request,
      headers: { ...headers, ...more },
      redirect: 'manual',
    });
    const text = await answer.text().catch(() => 'broken off');
    answers.push(`${answer.status} ${JSON.stringify([...answer.headers])} ${text}`);
    return text;
  };
  const rpc = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

  /** One call on each channel, with or without a proof of its own. */
  const channels = {
    http: (gateway: TestGateway, resource: string, input: object, proof?: string) =>
      sent(gateway, `/api/resources/${resource}/invoke`, JSON.stringify(input), {
        ...KEY,
        ...(proof === undefined ? {} : { 'payment-signature': proof }),
      }),
    mcp: (gateway: TestGateway, resource: string, input: object, proof?: string) =>
      sent(
        gateway,
        '/mcp',
        rpc('tools/call', {
          name: resource,
          arguments: input,
          ...(proof === undefined ? {} : { _meta: { 'x402/payment': proof } }),
        }),
        KEY,
      ),
    a2a: (gateway: TestGateway, resource: string, input: object, proof?: string) =>
      sent(
        gateway,
        '/a2a',
        rpc('SendMessage', {
          message: {
            messageId: randomUUID(),
            role: 'ROLE_USER',
            parts: [{ data: { resource, input }, mediaType: 'application/json' }],
            ...(proof === undefined ? {} : { metadata: { 'x402.payment.payload': proof } }),
          },
        }),
        KEY,
      ),
  } as const;
  const proofFor = async (gateway: TestGateway, resource: string, input: object): Promise<string> => {
    const terms = JSON.parse(await channels.http(gateway, resource, input)) as {
      readonly payment: { readonly envelope: unknown };
    };
    const proof = await buyer.pay(terms.payment.envelope);
    const { payload } = JSON.parse(Buffer.from(proof, 'base64').toString()) as { payload: { signature: string } };
    proofs.push(payload.signature.slice(2), proof.slice(-60));
    return proof;
  };

  /** What goes right, and what goes wrong on the agent's side or the merchant's. */
  const trade = async (gateway: TestGateway, channel: Channel): Promise<void> => {
    const call = channels[channel];
    const proof = await proofFor(gateway, TOOL, INPUT);
    assert.match(await call(gateway, TOOL, INPUT, proof), /sold/, `${channel} sells`);
    assert.match(await call(gateway, TOOL, INPUT, proof), /sold/, `${channel} repeats the answer for the key`);
    await call(gateway, TOOL, { city: 'Lisboa' }, proof);
    await call(gateway, 'failing_post', { status: 500 }, await proofFor(gateway, 'failing_post', { status: 500 }));
    await call(gateway, 'resetting_post', {}, await proofFor(gateway, 'resetting_post', {}));
    for (const free of ['free_failing', 'free_redirecting', 'free_resetting'])
      await call(gateway, free, free === 'free_failing' ? { status: 500 } : {});
    await call(gateway, TOOL, INPUT, CANARIES['a proof that is none']);
    await call(gateway, TOOL, INPUT, Buffer.from(CANARIES['a proof that is none']).toString('base64'));
    await call(gateway, TOOL, { city: { wrong: CANARIES['a secret in a refused input'] } });
    await call(gateway, TOOL, { [NAMES['the name of a member']]: 1, city: 'Berlin' });
    await call(gateway, NAMES['the name of a resource'], {});
    const path = channel === 'http' ? `/api/resources/${TOOL}/invoke` : `/${channel}`;
    await sent(gateway, path, `{"city":"${CANARIES['a secret in a broken body']}"`);
    await sent(gateway, path, `{"a":1,"a":"${CANARIES['a secret in a broken body']}"}`);
    await sent(gateway, `${path}?token=${CANARIES['a token in a query']}`, '{}');
  };

  return { answers, proofs, channels, sent, proofFor, trade };
}

/** A proxy before a node or facilitator: honest, or one that quotes each request in its errors. */
interface QuotingProxy {
  readonly url: string;
  /** Whether the head of a request held these words. */
  received(words: string): boolean;
  quote(on: boolean): void;
  stop(): Promise<void>;
}

/** Passes everything below `prefix` on to `target`. */
async function startQuotingProxy(prefix: string, target: string): Promise<QuotingProxy> {
  let quoting = false;
  const heads: string[] = [];
  const server = await serveHttp(async ({ request, response, body }) => {
    const { url = '', method = 'POST', rawHeaders } = request;
    const head = `${url} ${rawHeaders.join(' ')}`;
    heads.push(head);
    if (quoting || !url.startsWith(prefix)) {
      const text = `refused: ${head} ${body.toString()}`;
      response.statusMessage = head.slice(0, 500).replaceAll(/[^\x20-\x7e]/g, '');
      const reasons = { error: text, invalidReason: text, errorReason: text, message: text };
      return answerJson(response, 500, { ...reasons, jsonrpc: '2.0', id: 1 });
    }
    const answer = await fetch(`${target}${url.slice(prefix.length)}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body.length === 0 ? {} : { body }),
    });
    answerJson(response, answer.status, await answer.json());
  });
  return {
    url: `${server.url}${prefix}`,
    received: (words) => heads.some((head) => head.includes(words)),
    quote: (on) => {
      quoting = on;
    },
    stop: server.stop,
  };
}

/** Starts a backend that puts secrets where the gateway might repeat them. */
function startLeakyBackend(secrets: { readonly body: string; readonly location: string }): Promise<SampleBackend> {
  const headers = { 'content-type': 'application/json', 'x-debug': secrets.body };
  return startSampleBackend({
    routes: [
      route('GET|POST', '/fail/.*', (_, response) => {
        // JSON alone is told to the caller; a page of a framework is not.
        response.writeHead(500, secrets.body, { ...headers, 'content-type': 'text/html' });
        response.end(`<pre>${JSON.stringify({ error: secrets.body })}</pre>`);
      }),
      route('GET', '/redirect', (_, response) => {
        response.writeHead(302, { location: `http://127.0.0.1:1/${secrets.location}` }).end();
      }),
      route('GET|POST', '/reset', (_, response) => resetConnection(response)),
      route('GET|POST', '/.*', (_, response) => void response.writeHead(200, headers).end('{"sold":true}')),
    ],
  });
}

/**
 * Of the fields of a record that is not at an end: what the payment is finished with when the buyer
 * does not come back.
 */
const HELD_WHILE_OPEN = /^\S+:buy:\S+ /;
/**
 * The transaction that was sent for such a record has the signature that the chain shows: r and s,
 * and behind them a mark whose first byte may be the same as the signature's last one.
 */
const SENT = /"rawTransaction":"0x[0-9a-f]+"/;

describe('planted secrets', () => {
  let redis: TestRedis;
  let chain: Chain;
  let agent: ReturnType<typeof canaryAgent>;
  let backend: SampleBackend;
  let node: QuotingProxy;
  let facilitator: QuotingProxy;
  let gateways: readonly TestGateway[];
  const stop: (() => Promise<unknown>)[] = [];

  before(async () => {
    redis = await startRedis({ args: ['--requirepass', CANARIES['the password of Redis']] });
    stop.push(() => redis.stop());
    chain = await startChain();
    stop.push(() => chain.stop());
    agent = canaryAgent(await createBuyer(chain));
    backend = await startLeakyBackend({
      body: CANARIES["a secret in the merchant's failure"],
      location: CANARIES["a secret in the merchant's redirect"],
    });
    const official = await startFacilitator(chain);
    node = await startQuotingProxy(`/v3/${CANARIES['the key in the URL of the chain node']}`, chain.rpcUrl);
    facilitator = await startQuotingProxy(`/f/${CANARIES['the key in the URL of the facilitator']}`, official.url);
    stop.push(backend.stop, official.stop, node.stop, facilitator.stop);
    const remote = { auth: { type: 'bearer', token: CANARIES['the bearer of the facilitator'] } };
    gateways = [await open({ mode: 'local' }), await open({ mode: 'remote', url: facilitator.url }, remote)];
  });
  after(async () => {
    for (const gateway of gateways) await gateway.close();
    for (const end of stop.reverse()) await end();
  });

  const open = (lane: { mode: 'local' } | { mode: 'remote'; url: string }, more: object = {}): Promise<TestGateway> =>
    openGateway({
      chain: { ...chain, rpcUrl: node.url },
      backendUrl: backend.url,
      facilitator: lane,
      storage: { redis: { url: redis.url } },
      overrides: {
        merchant: { id: `shop-${lane.mode}` },
        server: { adminTokenNext: CANARIES['the next operator token'] },
        storage: { redis: { password: CANARIES['the password of Redis'] } },
        backend: { headers: { 'x-api-key': CANARIES["the merchant's API key"] } },
        protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
        payments: { x402: { facilitator: more } },
      },
    });

  /** What operators and strangers read. */
  const read = async (gateway: TestGateway): Promise<Sinks> => {
    const open = await Promise.all(
      ['/health', '/ready', '/api/resources', '/.well-known/agent-commerce', '/.well-known/agent-card.json'].map(
        async (path) => (await fetch(`${gateway.url}${path}`)).text(),
      ),
    );
    await agent.sent(gateway, `/api/events?token=${CANARIES['a token in a query']}`);
    await agent.sent(gateway, '/api/receipts', undefined, {
      authorization: `Bearer ${CANARIES["an agent's Authorization"]}`,
    });
    return {
      events: await (await gateway.operator('/api/events?limit=500')).text(),
      receipts: await (await gateway.operator('/api/receipts?limit=500')).text(),
      'the published documents': open.join('\n'),
      metrics: await readMetrics(gateway.managementUrl),
      'readiness on the management port': await (await fetch(`${gateway.managementUrl}/ready`)).text(),
      log: gateway.logLines.join(''),
    };
  };
  const everything = async (): Promise<Sinks> => {
    const sinks: Record<string, string> = { 'what was answered': agent.answers.join('\n') };
    for (const gateway of gateways)
      for (const [name, text] of Object.entries(await read(gateway)))
        sinks[`${name} of ${gateway.config.merchant.id}`] = text;
    return sinks;
  };
  const canaries = (): Readonly<Record<string, string>> => ({
    ...CANARIES,
    "the relayer's key": chain.relayerKey.slice(2),
    ...Object.fromEntries(agent.proofs.map((proof, i) => [`proof ${i}`, proof])),
  });

  for (const at of [0, 1])
    for (const channel of CHANNELS)
      it(`are used over ${channel}, with ${at === 0 ? 'the local rail' : 'a facilitator'}`, async () => {
        const gateway = gateways[at] ?? assert.fail('not open');
        await agent.trade(gateway, channel);
      });

  it('are where they are meant to be', () => {
    const sent = backend.requests.map(({ url, rawHeaders }) => `${url} ${rawHeaders.join(' ')}`).join('\n');
    assert.ok(sent.includes(CANARIES["the merchant's API key"]));
    assert.ok(facilitator.received(CANARIES['the bearer of the facilitator']));
    for (const name of [
      "an agent's Authorization",
      "an agent's mandate",
      "an agent's cookie",
      'an idempotency key',
    ] as const)
      assert.ok(!sent.includes(CANARIES[name]), `the backend got ${name}`);
  });

  it('are in nothing that comes out', async () => {
    const sinks = await everything();
    for (const [sink, text] of Object.entries(sinks)) assert.ok(text.length > 20, `${sink} has something in it`);
    assert.deepEqual(found(canaries(), sinks), []);
    const others = Object.entries(sinks).filter(([sink]) => sink !== 'what was answered');
    const withoutPath = others.map(([sink, text]) => [sink, text.replaceAll(/"path":"[^"]*"/g, '')] as const);
    assert.deepEqual(found(NAMES, Object.fromEntries(withoutPath)), []);
  });

  it('are not in Redis, but for the proof of a payment that is not at an end', async () => {
    const stored = await everythingIn(redis.socketPath, CANARIES['the password of Redis']);
    const held = stored.filter((line) => HELD_WHILE_OPEN.test(line));
    const others = stored.filter((line) => !HELD_WHILE_OPEN.test(line));
    assert.ok(others.length > 50 && held.length > 0);
    const unsent = others.map((line) => line.replace(SENT, ''));
    assert.deepEqual(found({ ...canaries(), ...NAMES }, { Redis: unsent.join('\n') }), []);
    // What is held is the proof and nothing else, and only where the record still wants work.
    assert.deepEqual(found(CANARIES, { 'the proofs in Redis': held.join('\n') }), []);
    const open = held.map((line) => {
      const key = line.split(' ')[0]?.replace(':buy:', ':pay:');
      return stored.find((other) => other.startsWith(`${key} `)) ?? '';
    });
    for (const record of new Set([...open, ...others.filter((line) => SENT.test(line))])) {
      const state = /"state":"(\w+)"/.exec(record)?.[1] ?? '';
      assert.ok(['undelivered', 'settling', 'settled'].includes(state), `${state} keeps its proof`);
    }
  });

  it('do not come out of peers that quote what they were sent', async () => {
    for (const [at, gateway] of gateways.entries()) {
      const late = await agent.proofFor(gateway, TOOL, INPUT);
      (at === 0 ? node : facilitator).quote(true);
      const failed = /PAYMENT_PROVIDER_UNAVAILABLE|PAYMENT_SETTLEMENT_FAILED/;
      for (const channel of CHANNELS) assert.match(await agent.channels[channel](gateway, TOOL, INPUT, late), failed);
      node.quote(true);
      for (const channel of CHANNELS) assert.match(await agent.channels[channel](gateway, TOOL, INPUT, late), failed);
      node.quote(false);
      facilitator.quote(false);
    }
    assert.deepEqual(found(canaries(), await everything()), []);
  });

  it('do not come out when the store refuses the gateway', async () => {
    // A proof for each gateway, while challenges still work.
    const last = await Promise.all(gateways.map((gateway) => agent.proofFor(gateway, TOOL, INPUT)));
    const admin = new Redis({ path: redis.socketPath, password: CANARIES['the password of Redis'] });
    await admin.config('SET', 'requirepass', 'another-password');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    for (const [at, gateway] of gateways.entries())
      for (const channel of CHANNELS)
        assert.match(await agent.channels[channel](gateway, TOOL, INPUT, last[at]), /STORAGE_ERROR/);
    await admin.config('SET', 'requirepass', CANARIES['the password of Redis']);
    admin.disconnect();
    const sinks = Object.fromEntries([
      ['what was answered', agent.answers.join('\n')],
      ...gateways.map((gateway) => [`log of ${gateway.config.merchant.id}`, gateway.logLines.join('')] as const),
    ]);
    assert.deepEqual(found(canaries(), sinks), []);
  });

  it('would be noticed, in every spelling', () => {
    const secret = CANARIES['an idempotency key'];
    for (const spelled of [
      secret,
      JSON.stringify({ a: secret }),
      Buffer.from(`{"key":"${secret}"}`).toString('base64'),
      Buffer.from(`xx${secret}xx`).toString('base64url'),
      Buffer.from(secret).toString('hex'),
      `?key=${encodeURIComponent(secret)}`,
    ])
      assert.notDeepEqual(found({ secret }, { sink: spelled }), [], spelled);
    assert.deepEqual(found({ secret }, { sink: `${secret.slice(0, -3)} ${secret.slice(3)}` }), []);
  });
});
