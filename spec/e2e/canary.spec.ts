import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { createBuyer } from '../support/buyer.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import type { SampleBackend } from '../support/sample-backend.ts';
import { CANARIES, CHANNELS, canaryAgent, INPUT, NAMES, TOOL } from './canary-agent.ts';
import { type QuotingProxy, startLeakyBackend, startQuotingProxy } from './canary-peers.ts';
import { everythingIn, found, type Sinks } from './canary-sinks.ts';

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
