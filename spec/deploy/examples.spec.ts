import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { Address } from 'viem';
import { parse } from 'yaml';
import type { Chain } from '../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { openChannel } from '../../tools/pay/target.ts';
import { cdpChecker, publicHalf } from '../payments/x402/wire/cdp-checker.ts';
import { createBuyer } from '../support/buyer.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { serveHttp } from '../support/http-server.ts';
import { freePorts } from '../support/ports.ts';
import { type PublicNetwork, startPublicChain } from '../support/public-chain.ts';
import { readChallenge } from '../support/purchase.ts';
import { startRedis } from '../support/redis.ts';
import { startSampleBackend } from '../support/sample-backend.ts';

const EXAMPLES = 'deploy/examples';
const PAYEE = `0x${'1'.repeat(40)}`;
const PRICE_UNITS = 10_000n;
const BERLIN = { city: 'Berlin' };
/** What an example is started against in place of what it names: the chain and those before it. */
const BASE_SEPOLIA: PublicNetwork = {
  chainId: 84_532,
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' as Address,
  name: 'USDC',
  version: '2',
};
const BASE: PublicNetwork = {
  chainId: 8_453,
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' as Address,
  name: 'USD Coin',
  version: '2',
};

/** An example as it runs. */
interface Running {
  readonly gateway: GatewayProcess;
  readonly chain: Chain;
  /** What was called at the merchant's service, as method and address. */
  called(): readonly string[];
  /** Pays what a 402 asks for, and answers with the header of the proof. */
  pay(paymentRequired: unknown): Promise<string>;
  /** What the payee has got, base units. */
  earned(): Promise<bigint>;
}

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

/**
 * Starts an example on a local chain that stands for its network. Only addresses are replaced: of
 * the merchant's service, the facilitator, the listeners and the folder of mounted secrets.
 */
async function running(name: string, network: PublicNetwork, mounted: Mounted = NOTHING_MOUNTED): Promise<Running> {
  const directory = await temporaryDirectory(ends, 'acg-examples-');
  const chain = await startPublicChain(network);
  ends.defer(() => chain.stop());
  const official = await startFacilitator(chain);
  ends.defer(() => official.stop());
  const backend = await startSampleBackend();
  ends.defer(() => backend.stop());
  const [agents = 0, management = 0] = await freePorts(2);
  const secrets = join(directory, 'secrets');
  mkdirSync(secrets);
  for (const [file, text] of Object.entries(mounted.secrets)) writeFileSync(join(secrets, file), text, { mode: 0o600 });
  const text = readFileSync(join(EXAMPLES, name), 'utf8')
    .replaceAll('http://127.0.0.1:3000', backend.url)
    .replaceAll('/run/secrets/', `${secrets}/`);
  const document = parse(text);
  document.server = { ...document.server, host: '127.0.0.1', port: agents };
  document.management = { host: '127.0.0.1', port: management };
  document.payments.x402.facilitator.url = await mounted.before(official.url);
  if (document.storage.sqlite !== undefined) document.storage.sqlite.path = join(directory, 'gateway.db');
  const configPath = join(directory, 'config.yaml');
  writeFileSync(configPath, JSON.stringify(document), { mode: 0o600 });
  const baseUrl = `http://127.0.0.1:${agents}`;
  const environment = { PUBLIC_URL: baseUrl, PAY_TO: PAYEE, RPC_URL: chain.rpcUrl };
  const env = { GATEWAY_DRAIN_SECONDS: '0', ...environment, ...mounted.environment };
  const gateway = await startGateway({ configPath, baseUrl, env });
  ends.defer(async () => void (await gateway.stop()));
  const buyer = await createBuyer(chain);
  return {
    gateway,
    chain,
    called: () => backend.requests.map(({ method, url }) => `${method} ${url}`),
    pay: (paymentRequired) => buyer.pay(paymentRequired),
    earned: () => chain.balanceOf(PAYEE),
  };
}

/** What stands around the gateway of an example. */
interface Mounted {
  /** Files of `/run/secrets`. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  /** Stands before the facilitator; resolves to the URL that is asked. */
  before(facilitator: string): Promise<string>;
}

const NOTHING_MOUNTED: Mounted = { secrets: {}, environment: {}, before: async (facilitator) => facilitator };

/** Buys the market report over a channel, as `acg pay` does. */
async function buy({ gateway, pay }: Running, over: { readonly mcp?: true } = {}): Promise<string> {
  const options = { resource: 'market_report', ...over };
  const channel = await openChannel(gateway.baseUrl, JSON.stringify(BERLIN), options);
  const { challenge } = await channel.send();
  const proof = await pay(challenge?.document);
  const { ok, body } = await channel.send({ proof, idempotencyKey: randomUUID() });
  const text = Buffer.from(body).toString();
  assert.ok(ok, text);
  return text;
}

function invoke({ gateway }: Running, id: string, input: object): Promise<Response> {
  return fetch(`${gateway.baseUrl}/api/resources/${id}/invoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input),
  });
}

describe('the list of examples', () => {
  it('names each, and each is started by a spec', () => {
    const specs = globSync('spec/{deploy,documents}/*.spec.ts').map((file) => readFileSync(file, 'utf8'));
    const listed = [...readFileSync(`${EXAMPLES}/README.md`, 'utf8').matchAll(/^\| \[([^\]]+)\]/gm)].map(
      ([, name]) => name,
    );
    const there = readdirSync(EXAMPLES).filter((name) => name !== 'README.md' && name !== 'config.yaml');
    assert.deepEqual(listed.sort(), there.sort());
    for (const name of there)
      assert.ok(
        specs.some((spec) => spec.includes(`running('${name}`) || spec.includes(`'deploy/examples/${name}/README.md'`)),
        name,
      );
  });
});

describe('the examples of configurations, started as they are', () => {
  it('free-and-paid.yaml gives the cities away and sells the report', async () => {
    const shop = await running('free-and-paid.yaml', BASE_SEPOLIA);
    const cities = await invoke(shop, 'cities', {});
    assert.equal(cities.status, 200);
    assert.equal((await invoke(shop, 'market_report', BERLIN)).status, 402);
    assert.match(await buy(shop), /"city":"Berlin"/);
    assert.equal(await shop.earned(), PRICE_UNITS);
    assert.deepEqual(shop.called(), ['GET /cities', 'GET /reports/Berlin']);
  });

  it('mcp-tool.yaml sells the report to models, and over no other channel', async () => {
    const shop = await running('mcp-tool.yaml', BASE_SEPOLIA);
    assert.equal((await invoke(shop, 'market_report', BERLIN)).status, 404);
    await buy(shop, { mcp: true });
    assert.equal(await shop.earned(), PRICE_UNITS);
  });

  it('website/config.yaml sells in place and lets the site through', async () => {
    const shop = await running('website/config.yaml', BASE_SEPOLIA);
    const url = `${shop.gateway.baseUrl}/reports/Berlin`;
    const { paymentRequired } = await readChallenge(await fetch(url));
    const bought = await fetch(url, { headers: { 'payment-signature': await shop.pay(paymentRequired) } });
    assert.equal(bought.status, 200);
    assert.equal(await shop.earned(), PRICE_UNITS);
    assert.equal((await fetch(`${shop.gateway.baseUrl}/weather/Berlin`)).status, 200);
    assert.equal((await fetch(`${shop.gateway.baseUrl}/admin`)).status, 404);
    assert.deepEqual(shop.called(), ['GET /reports/Berlin', 'GET /weather/Berlin']);
  });

  it('base-sepolia.yaml sells for test money', async () => {
    const shop = await running('base-sepolia.yaml', BASE_SEPOLIA);
    await buy(shop);
    assert.equal(await shop.earned(), PRICE_UNITS);
  });

  it("base.yaml sells with the login of Coinbase's facilitator, a user of Redis and sealed records", async () => {
    const redis = await startRedis({
      args: ['--user', 'gateway', 'on', '>a-password-of-this-test', '~*', '&*', '+@all'],
    });
    ends.defer(() => redis.stop());
    const { privateKey } = generateKeyPairSync('ed25519');
    const asked: string[] = [];
    const shop = await running('base.yaml', BASE, {
      secrets: {
        'admin-token': 'a-long-token-of-this-test',
        'redis-password': 'a-password-of-this-test',
        'sealing-key': Buffer.alloc(32, 1).toString('base64'),
        'cdp-key-id': 'a-key-of-this-test',
        'cdp-key-secret': secretOf(privateKey),
      },
      environment: { REDIS_URL: redis.url },
      before: (facilitator) => behindLogin(facilitator, privateKey, asked),
    });
    await buy(shop);
    assert.equal(await shop.earned(), PRICE_UNITS);
    assert.ok(asked.includes('/settle'), asked.join());
  });
});

/** The form in which Coinbase gives an Ed25519 key: seed and public key, 64 bytes. */
function secretOf(privateKey: KeyObject): string {
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
  return Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64');
}

/** Lets requests with a right login through to a facilitator, and notes their paths. */
async function behindLogin(facilitator: string, privateKey: KeyObject, asked: string[]): Promise<string> {
  const keys = new Map([['a-key-of-this-test', publicHalf(privateKey, 'EdDSA')]]);
  const refusalOf = cdpChecker(keys, () => Date.now() / 1_000);
  const server = await serveHttp(async ({ request, response, body }) => {
    const { method = '', url = '', headers } = request;
    const refusal = refusalOf({ authorization: headers.authorization, request: `${method} ${headers.host}${url}` });
    if (refusal !== undefined) {
      response.writeHead(401).end(refusal);
      return;
    }
    asked.push(url);
    const sent =
      method === 'GET' ? {} : { body: new Uint8Array(body), headers: { 'content-type': 'application/json' } };
    const answer = await fetch(`${facilitator}${url}`, { method, ...sent });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  ends.defer(() => server.stop());
  return server.url;
}
