import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { checkChain } from '../../../src/cli/doctor/chain.ts';
import { runChecks } from '../../../src/cli/doctor/check.ts';
import { checkClock } from '../../../src/cli/doctor/clock.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { ConfigObject } from '../../support/config.ts';
import { answerJson, type HttpExchange, serveHttp } from '../../support/http-server.ts';
import { type CheckedWorld, healthyStatuses, openCheckedWorld } from './checked-world.ts';

const ends = new AsyncDisposableStack();
let world: CheckedWorld;
let healthy: Awaited<ReturnType<CheckedWorld['examined']>>['statuses'];
before(async () => {
  world = await openCheckedWorld(ends);
  healthy = await healthyStatuses(world);
});
after(() => ends.disposeAsync());

/** A server of this file that answers so; its URL. */
async function peer(answer: (exchange: HttpExchange) => void | Promise<void>): Promise<string> {
  return ends.adopt(await serveHttp(answer), ({ stop }) => stop()).url;
}

/** Changes of `payments.x402`. */
async function found(x402: ConfigObject) {
  return world.examined({ payments: { x402 } });
}

const but = (changed: Readonly<Record<string, string>>) => ({ ...healthy, ...changed });
const AWAY = { mode: 'remote', url: 'http://127.0.0.1:1' };
/** Checks of each entry, by their names where there is one. */
const OF_ENTRY: ReadonlySet<string> = new Set(['chain node', 'chain head', 'asset', 'facilitator', 'clock']);
/** The entry of the world as it is written. */
async function firstEntry(): Promise<ConfigObject> {
  const document = JSON.parse(readFileSync(await world.configured(), 'utf8')) as { payments: { x402: ConfigObject } };
  return document.payments.x402;
}
const BEHIND_NODE = { 'chain head': 'SKIP', asset: 'SKIP' };

describe('the checks of several entries', () => {
  it('have the names of their networks, and tell of each by its path', async () => {
    const { network, ...first } = await firstEntry();
    const second = { ...first, network: 'eip155:84532', rpcUrl: 'http://127.0.0.1:1', facilitator: AWAY };
    const { statuses, text } = await world.examined({ payments: { x402: [{ network, ...first }, second] } });
    const { configuration, ...own } = Object.fromEntries(
      Object.entries(healthy).map(([check, status]) => [OF_ENTRY.has(check) ? `${check} ${network}` : check, status]),
    );
    const others = { 'chain node': 'FAIL', 'chain head': 'SKIP', asset: 'SKIP', facilitator: 'FAIL', clock: 'SKIP' };
    assert.deepEqual(statuses, {
      ...{ configuration, ...own },
      ...Object.fromEntries(Object.entries(others).map(([check, status]) => [`${check} eip155:84532`, status])),
    });
    assert.match(text, /^FAIL chain node eip155:84532: .*correct payments\.x402\[1\]\.rpcUrl or rpcUrls$/m);
    assert.match(text, /^FAIL facilitator eip155:84532: .*under payments\.x402\[1\]\.facilitator\.fallbacks$/m);
  });

  it('of one network have the address of the asset too', async () => {
    const { asset, ...first } = await firstEntry();
    const other = `0x${'5'.repeat(40)}`;
    const x402 = [asset, other].map((asset) => ({ ...first, asset }));
    const { statuses } = await world.examined({ payments: { x402 } });
    assert.deepEqual(
      Object.entries(statuses).filter(([check]) => check.startsWith('asset ')),
      [
        [`asset eip155:31337 ${String(asset)}`, 'PASS'],
        [`asset eip155:31337 ${other}`, 'FAIL'],
      ],
    );
  });
});

describe('the checks of the chain', () => {
  it('a node that is away, or of another chain, skips what it would tell', async () => {
    const away = await found({ rpcUrl: 'http://127.0.0.1:1' });
    assert.deepEqual(away.statuses, but({ 'chain node': 'FAIL', ...BEHIND_NODE }));
    assert.match(away.text, /^FAIL chain node: 127\.0\.0\.1:1 does not answer: .*ECONNREFUSED/m);
    const elsewhere = await peer(({ body, response }) => {
      const { id, method } = JSON.parse(body.toString() || '{}');
      answerJson(response, 200, { jsonrpc: '2.0', id, result: method === 'eth_chainId' ? '0x1' : '0x' });
    });
    const other = await found({ rpcUrl: elsewhere });
    assert.deepEqual(other.statuses, but({ 'chain node': 'FAIL', ...BEHIND_NODE }));
    assert.match(other.text, /is a node of eip155:1, not of eip155:31337; correct payments\.x402\.rpcUrl/);
  });

  it('a node that never answers ends with its deadline', async () => {
    const { statuses, text } = await found({ rpcUrl: await peer(() => undefined) });
    assert.deepEqual(statuses, but({ 'chain node': 'FAIL', ...BEHIND_NODE }));
    assert.match(text, /^FAIL chain node: .* does not answer: .*timeout/m);
  });

  it('without a node it says what is not known', async () => {
    const { statuses } = await found({ rpcUrl: undefined, payToExclusive: undefined });
    const { 'chain head': _head, asset: _asset, ...others } = healthy;
    assert.deepEqual(statuses, { ...others, 'chain node': 'SKIP' });
  });

  for (const [setting, value, says] of [
    ['assetName', 'Another USD', /assetName: the chain has Test USD, the configuration Another USD; correct/],
    ['assetVersion', '9', /assetVersion: the chain has 2, the configuration 9; correct/],
    ['assetDecimals', 18, /assetDecimals: the chain has 6, the configuration 18; correct/],
    ['asset', `0x${'5'.repeat(40)}`, /asset: the chain has nothing, the configuration 0x5555/],
  ] as const)
    it(`another ${setting} than the chain's shows in asset alone`, async () => {
      const { statuses, text } = await found({ [setting]: value });
      assert.deepEqual(statuses, but({ asset: 'FAIL' }));
      assert.match(text, says);
    });

  it('a newest block that is old fails on a mainnet and warns on a testnet', async () => {
    const { x402 } = loadConfig({ path: await world.configured(), env: {} });
    assert.ok(x402 !== undefined);
    for (const [mode, lateMs, status] of [
      ['mainnet', 0, 'PASS'],
      ['mainnet', 600_000, 'FAIL'],
      ['testnet', 600_000, 'WARN'],
      ['local', 600_000, 'PASS'],
    ] as const) {
      const part = checkChain({ at: 'payments.x402', x402: { ...x402, mode } }, () => Date.now() + lateMs);
      const findings = await runChecks(part.checks, () => undefined);
      await part.close?.();
      const head = findings.filter(({ check }) => check === 'chain head');
      assert.deepEqual(
        head.map((finding) => finding.status),
        [status],
        `${mode} ${lateMs}`,
      );
      if (status !== 'PASS') assert.match(head[0]?.message ?? '', /^the newest block, \d+, is \d{3} s old/);
    }
  });
});

describe('the check of the facilitators', () => {
  const supporting = (network: string) => peer(({ response }) => answerJson(response, 200, supported(network)));
  const supported = (network: string) => ({
    kinds: [{ x402Version: 2, scheme: 'exact', network }],
    extensions: [],
    signers: {},
  });
  const remote = (url: string, more: ConfigObject = {}) => ({ facilitator: { mode: 'remote', url, ...more } });

  it('one that is away, or serves another network, fails', async () => {
    const away = await found(remote('http://127.0.0.1:1'));
    assert.deepEqual(away.statuses, but({ facilitator: 'FAIL' }));
    assert.match(away.text, /^FAIL facilitator: 127\.0\.0\.1:1: .*ECONNREFUSED.*; look whether it is up/m);
    const other = await found(remote(await supporting('eip155:8453')));
    assert.deepEqual(other.statuses, but({ facilitator: 'FAIL' }));
    assert.match(other.text, /does not serve exact on eip155:31337; name a facilitator of this network/);
  });

  it('one that refuses the login fails, and says which setting it is', async () => {
    const wanting = await peer(({ request, response }) =>
      request.headers.authorization === 'Bearer the-right-token'
        ? answerJson(response, 200, supported('eip155:31337'))
        : answerJson(response, 401, { error: `no ${request.headers.authorization}` }),
    );
    const without = await found(remote(wanting, { auth: { type: 'none' } }));
    assert.deepEqual(without.statuses, but({ facilitator: 'FAIL' }));
    assert.match(without.text, /answered 401; set payments\.x402\.facilitator\.auth/);
    const wrong = await found(remote(wanting, { auth: { type: 'bearer', token: 'a-wrong-token' } }));
    assert.deepEqual(wrong.statuses, but({ facilitator: 'FAIL' }));
    assert.match(wrong.text, /answered 401; look at payments\.x402\.facilitator\.auth/);
    const right = await found(remote(wanting, { auth: { type: 'bearer', token: 'the-right-token' } }));
    assert.deepEqual(right.statuses, healthy);
  });

  it('one of several that is away is a warning', async () => {
    const fallbacks = [{ url: 'http://127.0.0.1:1', auth: { type: 'none' } }];
    const { statuses, text } = await found(remote(world.facilitator.url, { fallbacks }));
    assert.deepEqual(statuses, but({ facilitator: 'WARN' }));
    assert.equal(text.match(/^PASS facilitator: .*$/gm)?.length, 1);
  });

  for (const [offMs, status, says] of [
    [-10_000, 'WARN', /this machine is \d+ s ahead of .*: proofs that begin now are refused above 5 s; set the clock/],
    [10_000, 'WARN', /this machine is \d+ s behind /],
    [60_000, 'FAIL', /this machine is \d+ s behind .*: payments are refused above 30 s/],
    [2_000, 'PASS', /agrees with /],
  ] as const)
    it(`one whose clock is ${offMs / 1_000} s off shows in clock alone: ${status}`, async () => {
      const lying = await peer(({ response }) => {
        response.setHeader('date', new Date(Date.now() + offMs).toUTCString());
        answerJson(response, 200, supported('eip155:31337'));
      });
      const { statuses, text } = await found(remote(lying));
      assert.deepEqual(statuses, but({ clock: status }));
      assert.match(text, says);
    });

  it('a newest block of the future shows a clock that is behind, an old one nothing', async () => {
    for (const [offMs, status] of [
      [60_000, 'FAIL'],
      [10_000, 'WARN'],
      [2_000, 'PASS'],
      [-60_000, 'SKIP'],
    ] as const) {
      const check = checkClock({ peers: [], newestBlockMs: async () => Date.now() + offMs });
      const [found] = await runChecks([check], () => undefined);
      assert.equal(found?.status, status, String(offMs));
    }
  });

  it('an answer that a cache has kept says nothing about the time', async () => {
    const cached = await peer(({ response }) => {
      response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString()).setHeader('age', '3600');
      answerJson(response, 200, supported('eip155:31337'));
    });
    assert.deepEqual((await found(remote(cached))).statuses, healthy);
  });
});

describe('the check of the gas of a relayer', () => {
  /** A local facilitator with this key. */
  const relaying = (privateKey: string) =>
    found({ facilitator: { mode: 'local', url: undefined, auth: undefined, privateKey } });
  const ofLocal = () => {
    const { facilitator: _facilitator, ...others } = healthy;
    return others;
  };

  it('passes with gas, warns when it lasts for few payments, and fails without', async () => {
    const full = await relaying(world.chain.relayerKey);
    assert.deepEqual(full.statuses, { ...ofLocal(), 'relayer gas': 'PASS' });
    const key = generatePrivateKey();
    const address = privateKeyToAddress(key).toLowerCase();
    const empty = await relaying(key);
    assert.deepEqual(empty.statuses, { ...ofLocal(), 'relayer gas': 'FAIL' });
    assert.match(empty.text, new RegExp(`${address} has gas for 0 payments .*; send gas to ${address}`));
    // Five payments of 160,000 units at the price that one costs now.
    const price = BigInt((await world.chain.request('eth_gasPrice', [])) as string);
    await world.chain.request('anvil_setBalance', [address, `0x${(price * 160_000n * 9n).toString(16)}`]);
    const low = await relaying(key);
    assert.deepEqual(low.statuses, { ...ofLocal(), 'relayer gas': 'WARN' });
    assert.match(low.text, /has gas for [1-9] payments at the present price; send gas/);
  });
});
