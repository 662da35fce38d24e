import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';
import { worldConfig, writeConfig } from '../support/config.ts';
import { type GatewayOptions, startGateway } from '../support/gateway-process.ts';
import { freePorts } from '../support/ports.ts';

const CHAIN_SOURCE = join(import.meta.dirname, '../../tools/local-world/chain.ts');
const TOKEN = { address: `0x${'1'.repeat(40)}`, name: 'Test USD', version: '2', decimals: 6 } as const;
const CHAIN = {
  rpcUrl: 'http://127.0.0.1:1',
  chainId: 31337,
  token: TOKEN,
  relayerKey: `0x${'2'.repeat(64)}`,
} as const;

describe('processes and files of the local world', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'acg-processes-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  it('a chain ends with its owner, also when that is killed with SIGKILL', async () => {
    const script = `const { startChain } = await import(${JSON.stringify(CHAIN_SOURCE)});
      console.log((await startChain()).rpcUrl); setInterval(() => {}, 1000);`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [rpcUrl] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string];
    assert.ok(await answers(rpcUrl));
    owner.kill('SIGKILL');
    const deadline = Date.now() + 5_000;
    while (await answers(rpcUrl)) {
      assert.ok(Date.now() < deadline, 'the chain outlived its owner');
      await delay(20);
    }
  });

  /** A program in the gateway's place. */
  async function gatewayOf(name: string, source: string): Promise<GatewayOptions> {
    const entry = join(directory, `${name}.mjs`);
    await writeFile(entry, source);
    const [port = 0] = await freePorts(1);
    const configPath = join(directory, `${name}.yaml`);
    await writeFile(configPath, String(port));
    return { entry, configPath, baseUrl: `http://127.0.0.1:${port}`, readyTimeoutMs: 3_000 };
  }

  it('a gateway counts as started once /ready is 200; its log lines can be awaited; SIGTERM lets it finish', async () => {
    const options = await gatewayOf(
      'good',
      `import { createServer } from 'node:http'; import { readFileSync } from 'node:fs';
       let asked = 0;
       createServer((request, response) => response.writeHead(++asked > 2 ? 200 : 503).end())
         .listen(Number(readFileSync(process.argv[4], 'utf8')), '127.0.0.1');
       console.log('no JSON'); console.log(JSON.stringify({ msg: 'listening', args: process.argv.slice(2, 4) }));
       process.on('SIGTERM', () => { console.log('{"msg":"drained"}'); process.exit(0); });`,
    );
    const gateway = await startGateway(options);
    assert.deepEqual((await gateway.logged(({ msg }) => msg === 'listening'))['args'], ['serve', '--config']);
    const drained = gateway.logged(({ msg }) => msg === 'drained');
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
    await drained;
  });

  it('a killed gateway runs no handler', async () => {
    const options = await gatewayOf(
      'stubborn',
      `import { createServer } from 'node:http'; import { readFileSync } from 'node:fs';
       createServer((request, response) => response.end()).listen(Number(readFileSync(process.argv[4], 'utf8')), '127.0.0.1');
       process.on('SIGTERM', () => {});`,
    );
    const gateway = await startGateway(options);
    assert.deepEqual(await gateway.kill(), { code: null, signal: 'SIGKILL' });
  });

  const failures = [
    [
      'ends at once',
      `console.error('config.yaml: port is wrong'); process.exit(2);`,
      /ended with 2[\s\S]*port is wrong/,
    ],
    [
      'never gets ready',
      `console.log('waiting'); setInterval(() => {}, 1000);`,
      /not ready after 1500 ms[\s\S]*waiting/,
    ],
  ] as const;
  for (const [what, source, reason] of failures) {
    it(`a gateway that ${what} is reported with its own output`, async () => {
      const options = await gatewayOf(what.replaceAll(' ', '-'), source);
      await assert.rejects(startGateway({ ...options, readyTimeoutMs: 1_500 }), reason);
    });
  }

  it('a configuration is written for its owner only, reads back as it was, and takes overrides', async () => {
    const config = worldConfig({
      backendUrl: 'http://127.0.0.1:3000',
      chain: CHAIN,
      storage: { sqlite: { path: ':memory:' } },
      facilitator: { mode: 'remote', url: 'http://127.0.0.1:4000' },
      ports: { agents: 8402, management: 8403 },
      payTo: TOKEN.address,
      overrides: { limits: { maxStreams: 2 }, payments: { x402: { rpcUrl: undefined, maxTimeoutSeconds: 60 } } },
    });
    const path = join(directory, 'world.yaml');
    await writeConfig(path, config);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const read = parse(await readFile(path, 'utf8')) as typeof config;
    assert.deepEqual(read, config);
    assert.deepEqual(read['payments'], {
      x402: {
        network: 'eip155:31337',
        asset: TOKEN.address,
        assetName: TOKEN.name,
        assetVersion: TOKEN.version,
        assetDecimals: 6,
        currency: 'TUSD',
        payTo: TOKEN.address,
        payToExclusive: true,
        maxTimeoutSeconds: 60,
        facilitator: { mode: 'remote', url: 'http://127.0.0.1:4000', auth: { type: 'none' } },
      },
    });
    const { market_report: paid, free_market_report: free } = read['resources'] as Record<string, { pricing: object }>;
    assert.deepEqual(
      [paid?.pricing, free?.pricing],
      [{ type: 'fixed', amount: '0.01', currency: 'TUSD' }, { type: 'free' }],
    );
  });
});

async function answers(rpcUrl: string): Promise<boolean> {
  try {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
    return (await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).ok;
  } catch {
    return false;
  }
}
