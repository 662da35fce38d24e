import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { stringify } from 'yaml';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { createBuyer } from '../support/buyer.ts';
import { type ConfigObject, type WorldParts, worldConfig } from '../support/config.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { type MountedVolume, mountVolume } from '../support/mounted-volume.ts';
import { freePorts } from '../support/ports.ts';
import { readChallenge } from '../support/purchase.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { startRedis } from '../support/redis.ts';
import { startSampleBackend } from '../support/sample-backend.ts';

/** What is published to a replica at a time. */
interface Published {
  /** Price of `market_report`, display units. */
  readonly price: string;
  /** The lines of the file with the operator token. */
  readonly tokens: readonly string[];
  readonly more?: ConfigObject;
}

/** One replica and its volumes. */
interface Replica {
  readonly process: GatewayProcess;
  readonly url: string;
  readonly managementUrl: string;
  readonly config: MountedVolume;
  /** Publishes both volumes and resolves when the gateway uses what they hold. */
  publish(next: Published): Promise<void>;
  invoke(headers?: Readonly<Record<string, string>>): Promise<Response>;
  operator(token: string): Promise<number>;
}

type ReplicaParts = Pick<WorldParts, 'chain' | 'backendUrl' | 'facilitator' | 'storage' | 'payTo'> & {
  readonly directory: string;
};

/** The resource whose price changes, and an input for it. */
const RESOURCE = 'market_report';
const INPUT = { city: 'Berlin' };
/** Both replicas sell for one merchant, at one public address. */
const MERCHANT = { publicBaseUrl: 'https://shop.example' };
const POLL_MS = 10;

/** The configuration file of a replica. */
function configText(parts: ReplicaParts, ports: WorldParts['ports'], { price, more = {} }: Published): string {
  const { directory: _directory, ...world } = parts;
  const overrides = { merchant: MERCHANT, resources: { [RESOURCE]: { pricing: { amount: price } } }, ...more };
  return stringify(worldConfig({ ...world, ports, overrides }), { aliasDuplicateObjects: false });
}

/** Starts a replica with what is published first. */
async function startReplica(name: string, parts: ReplicaParts, first: Published): Promise<Replica> {
  const [agents = 0, management = 0] = await freePorts(2);
  const ports = { agents, management };
  const textOf = (next: Published): string => configText(parts, ports, next);
  const lines = (tokens: readonly string[]): string => `${tokens.join('\n')}\n`;
  const config = await mountVolume(join(parts.directory, name, 'config'), { 'gateway.yaml': textOf(first) });
  const secret = await mountVolume(join(parts.directory, name, 'secret'), { ADMIN_TOKEN: lines(first.tokens) });
  const url = `http://127.0.0.1:${agents}`;
  const process = await startGateway({
    configPath: join(config.path, 'gateway.yaml'),
    baseUrl: url,
    env: { GATEWAY_DRAIN_SECONDS: '0', ADMIN_TOKEN_FILE: join(secret.path, 'ADMIN_TOKEN') },
  });
  const operator = async (token: string): Promise<number> => {
    const { status } = await fetch(`${url}/api/events?limit=1`, { headers: { authorization: `Bearer ${token}` } });
    return status;
  };
  const uses = async ({ price, tokens }: Published): Promise<boolean> => {
    const listed = (await (await fetch(`${url}/api/resources`)).json()) as Listing;
    const { pricing } = listed.resources.find(({ id }) => id === RESOURCE) ?? {};
    return pricing?.amount === price && (await operator(tokens[0] ?? '')) === 200;
  };
  return {
    ...{ process, url, config, operator },
    managementUrl: `http://127.0.0.1:${management}`,
    async publish(next) {
      await secret.publish({ ADMIN_TOKEN: lines(next.tokens) });
      await config.publish({ 'gateway.yaml': textOf(next) });
      while (!(await uses(next))) await delay(POLL_MS);
    },
    invoke: (headers = {}) =>
      fetch(`${url}/api/resources/${RESOURCE}/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(INPUT),
      }),
  };
}

interface Listing {
  readonly resources: readonly { readonly id: string; readonly pricing?: { readonly amount?: string } }[];
}

/** Changes of the configuration under load; RELOADS in the environment asks for more. */
const CHANGES = Number(process.env['RELOADS'] ?? 12);
const BUYERS = 4;
/** How far apart the replicas are, and how long a buyer takes to sign, milliseconds at most. */
const APART_MS = 300;

const tokenOf = (n: number): string => `operator-token-number-${n}-of-the-tests`;
/** Prices go up and down, and no two in a row are equal. */
const priceOf = (n: number): string => `0.0${1 + (n % 7)}`;
const published = (n: number): Published => ({
  price: priceOf(n),
  tokens: n === 0 ? [tokenOf(0)] : [tokenOf(n), tokenOf(n - 1)],
});

let ends: AsyncDisposableStack;
let chain: Chain;
let replicas: readonly [Replica, Replica];
let payTo: string;

before(async () => {
  ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-reload-');
  const [startedChain, backend, redis] = await Promise.all([startChain(), startSampleBackend(), startRedis()]);
  chain = startedChain;
  const facilitator = await startFacilitator(chain);
  for (const part of [redis, backend, chain, facilitator]) ends.defer(() => part.stop());
  payTo = privateKeyToAddress(generatePrivateKey());
  const parts = {
    ...{ directory, chain, payTo, backendUrl: backend.url },
    facilitator: { mode: 'remote', url: facilitator.url },
    storage: { redis: { url: redis.url } },
  } as const;
  const start = async (name: string): Promise<Replica> => {
    const replica = await startReplica(name, parts, published(0));
    ends.defer(async () => void (await replica.process.stop()));
    return replica;
  };
  replicas = [await start('one'), await start('other')];
});
after(async () => {
  await ends?.disposeAsync();
});

/** What buyers and operators met that they should not have. */
interface Trouble {
  readonly failed: string[];
  bought: number;
  paidUnits: bigint;
}

const either = (): Replica => replicas[Math.random() < 0.5 ? 0 : 1] ?? assert.fail();

/** Buys at whichever replica, with the challenge of whichever other, until it is told to end. */
async function buyOnAndOn(trouble: Trouble, ended: () => boolean): Promise<void> {
  const buyer = await createBuyer(chain, 1_000_000_000n);
  while (!ended()) {
    const { units, paymentRequired } = await readChallenge(await either().invoke());
    const proof = await buyer.pay(paymentRequired);
    await delay(Math.random() * APART_MS);
    const answer = await either().invoke({ 'payment-signature': proof });
    const text = await answer.text();
    if (answer.status !== 200) {
      trouble.failed.push(`${answer.status} ${text.slice(0, 300)}`);
      continue;
    }
    trouble.bought += 1;
    trouble.paidUnits += units;
    const response = JSON.parse(
      Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString('utf8'),
    ) as { readonly amount?: string };
    if (Math.round(Number(response.amount) * 1e6) !== Number(units)) trouble.failed.push(`stated ${response.amount}`);
  }
}

/** Reads for nothing and as operator; `current`: a number whose token every replica accepts. */
async function readOnAndOn(trouble: Trouble, current: () => number, ended: () => boolean): Promise<void> {
  while (!ended()) {
    const { url } = either();
    const free = await fetch(`${url}/api/resources/cities/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    await free.text();
    if (free.status !== 200) trouble.failed.push(`free: ${free.status}`);
    const status = await either().operator(tokenOf(current()));
    if (status !== 200) trouble.failed.push(`operator: ${status}`);
    await delay(5);
  }
}

describe('two replicas whose prices and tokens change while they sell', { timeout: 120_000 + CHANGES * 15_000 }, () => {
  it(`refuse no proof that was signed before a change, and fail no call (${CHANGES} changes)`, async (t) => {
    const trouble: Trouble = { failed: [], bought: 0, paidUnits: 0n };
    let over = false;
    // The token that both accept: the newest one once both have it, and until then the one before.
    let shared = 0;
    const load = [
      ...Array.from({ length: BUYERS }, () => buyOnAndOn(trouble, () => over)),
      readOnAndOn(
        trouble,
        () => shared,
        () => over,
      ),
    ];
    try {
      for (let n = 1; n <= CHANGES; n += 1) {
        const order = n % 2 === 0 ? replicas : replicas.toReversed();
        for (const replica of order) {
          await replica.publish(published(n));
          await delay(Math.random() * APART_MS);
        }
        shared = n;
      }
    } finally {
      over = true;
      await Promise.all(load);
    }
    assert.deepEqual(trouble.failed, []);
    assert.ok(trouble.bought >= CHANGES, `only ${trouble.bought} were bought`);
    assert.equal(await chain.balanceOf(payTo), trouble.paidUnits, 'each was paid at the price that was offered');
    for (const { managementUrl } of replicas) {
      const metrics = await readMetrics(managementUrl);
      const reloaded = /^acg_config_reloads_total\{result="reloaded"\} (\d+)/m.exec(metrics)?.[1];
      assert.ok(Number(reloaded) >= CHANGES, `reloaded ${reloaded} times`);
      assert.match(metrics, /^acg_config_reloads_total\{result="rejected"\} 0/m);
      assert.match(metrics, /^acg_config_outdated 0/m);
    }
    t.diagnostic(`${CHANGES} changes, ${trouble.bought} bought, none failed`);
  });

  it('do not show a token in their log, not even one that came with a change', () => {
    for (const { process } of replicas) assert.doesNotMatch(process.output(), /operator-token-number/);
  });
});

describe('a file that is broken', () => {
  it('changes nothing: the answers stay the same byte for byte, and the log says what is wrong', async () => {
    const [replica] = replicas;
    const paths = ['/api/resources', '/.well-known/agent-commerce'];
    const answers = () =>
      Promise.all(
        paths.map(async (path) => {
          const answer = await fetch(`${replica.url}${path}`);
          const text = (await answer.text()).replaceAll(/"checkedAt":"[^"]*"/g, '');
          return [answer.status, text, path === '/api/resources' ? answer.headers.get('etag') : ''];
        }),
      );
    const before = await answers();
    const rejected = async (): Promise<number> => {
      const metrics = await readMetrics(replica.managementUrl);
      return Number(/^acg_config_reloads_total\{result="rejected"\} (\d+)/m.exec(metrics)?.[1]);
    };
    for (const broken of ['version: 1\nresources: {', 'version: 1\nmerchant: { id: x }\n']) {
      const already = await rejected();
      await replica.config.publish({ 'gateway.yaml': broken });
      while ((await rejected()) === already) await delay(10);
      assert.deepEqual(await answers(), before);
    }
    await replica.process.logged(
      ({ msg, problems }) => msg === 'config rejected' && JSON.stringify(problems).includes('merchant.name'),
    );
    const metrics = await readMetrics(replica.managementUrl);
    assert.match(metrics, /^acg_config_outdated 1/m);
  });

  it('is followed by the next good one', async () => {
    const [replica] = replicas;
    await replica.publish(published(CHANGES + 1));
    const metrics = await readMetrics(replica.managementUrl);
    assert.match(metrics, /^acg_config_outdated 0/m);
  });
});

describe('a list of blocked payers', () => {
  it('that becomes shorter is a warning: its file may be half written', async () => {
    const [replica] = replicas;
    const blockedPayers = [payTo];
    await replica.publish({ ...published(CHANGES + 2), more: { payments: { blockedPayers } } });
    await replica.publish(published(CHANGES + 3));
    await replica.process.logged(
      ({ msg, before, after: now }) => msg === 'fewer payers are blocked' && before === 1 && now === 0,
    );
  });
});
