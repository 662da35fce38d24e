import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { privateKeyToAddress } from 'viem/accounts';
import { loadConfig } from '../../src/config/load.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { AMOY, type Changes, changed, PAYEE, SEPOLIA } from '../config/document/document.ts';
import { acg, type CommandRun } from './acg.ts';

const EXAMPLE = 'deploy/examples/website';
const NODE = 'http://127.0.0.1:1';
const REDIS: Changes = { storage: { redis: { url: 'redis://127.0.0.1:1' } } };
const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

async function validate(changes: Changes, ...options: readonly string[]): Promise<CommandRun> {
  const folder = await temporaryDirectory(ends, 'acg-validate-');
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(changed(changes)));
  return acg(folder, ['validate', ...options]);
}

describe('acg validate', () => {
  it('prints the price list', async () => {
    const { code, lines, errors } = await validate({});
    assert.deepEqual([code, errors], [0, '']);
    assert.deepEqual(lines, [
      'valid: 1 resources, 1 of them paid; x402 on eip155:84532 (testnet); store sqlite',
      'id      method  path             price      channels',
      'report  GET     /reports/{city}  0.01 USDC  http',
    ]);
  });

  it('prints the networks and the prices of all entries', async () => {
    const { code, lines, errors } = await validate({
      'payments.x402': [SEPOLIA, { ...AMOY, currency: 'AMOY' }],
      'resources.report.pricing': { type: 'fixed', amounts: { USDC: '0.01', AMOY: '0.02' } },
    });
    assert.deepEqual([code, errors], [0, '']);
    assert.deepEqual(lines, [
      'valid: 1 resources, 1 of them paid; x402 on eip155:84532 (testnet), eip155:80002 (testnet); store sqlite',
      'id      method  path             price                   channels',
      'report  GET     /reports/{city}  0.01 USDC or 0.02 AMOY  http',
    ]);
    const removed = await validate({ 'payments.x402': [SEPOLIA, { ...AMOY, offered: false }] });
    assert.match(removed.lines[0] ?? '', /x402 on eip155:84532 \(testnet\), eip155:80002 \(testnet, not offered\);/);
    assert.match(removed.lines[2] ?? '', / 0\.01 USDC {2}http$/);
  });

  it('prints the accounts that need gas, with their networks where there are several', async () => {
    const keys = [`0x${'42'.repeat(32)}`, `0x${'43'.repeat(32)}`] as const;
    const entries = keys.map((privateKey, index) => ({
      ...{ network: ['base-sepolia', 'polygon-amoy'][index], payTo: PAYEE, rpcUrl: NODE },
      facilitator: { mode: 'local', privateKey },
    }));
    const told = async (x402: readonly object[]) => {
      const { lines } = await validate({ ...REDIS, 'payments.x402': x402 }, '--verbose');
      return lines.filter((line) => line.startsWith('relayer account'));
    };
    const [one, other] = keys.map((key) => privateKeyToAddress(key).toLowerCase());
    assert.deepEqual(await told(entries), [
      `relayer account, which needs gas on eip155:84532: ${one}`,
      `relayer account, which needs gas on eip155:80002: ${other}`,
    ]);
    assert.deepEqual(await told(entries.slice(0, 1)), [`relayer account, which needs gas: ${one}`]);
  });

  it('prints the table of routes, and warnings apart from it', async () => {
    const { code, lines, errors } = await validate(
      { 'backend.passthrough': { enabled: true }, 'resources.report.expose': ['origin'] },
      '--verbose',
    );
    assert.equal(code, 0);
    assert.match(lines[0] ?? '', /^valid: 1 resources/);
    assert.ok(lines.some((line) => /^path +method +becomes +where$/.test(line)));
    assert.match(lines.at(-1) ?? '', /^everything else +any +passed +backend\.passthrough$/);
    assert.match(errors, /^warning: backend\.passthrough: has neither include nor exclude/);
  });

  it('refuses an address that means two inputs, with the reason', async () => {
    const { code, errors } = await validate({
      'resources.report.expose': ['origin'],
      'resources.report.backend.path': '/reports/{city}-{city2}',
      'resources.report.inputSchema': {
        type: 'object',
        properties: { city: { type: 'string' }, city2: { type: 'string' } },
        required: ['city', 'city2'],
      },
    });
    assert.equal(code, 78);
    assert.match(errors, /resources\.report\.backend\.path: cannot be sold at its own address .*two parameters/);
  });

  it('refuses a probe of the merchant at something that is sold, as the start does', async () => {
    const folder = await temporaryDirectory(ends, 'acg-validate-');
    writeFileSync(join(folder, 'config.yaml'), JSON.stringify(changed({})));
    const probe = { GATEWAY_APP_PROBE_LIVENESS: 'http://127.0.0.1:3000/reports/Berlin' };
    for (const command of ['validate', 'serve']) {
      const { code, lines, errors } = await acg(folder, [command], probe);
      assert.equal(code, 78);
      assert.match(
        command === 'serve' ? lines.join() : errors,
        /GATEWAY_APP_PROBE_LIVENESS: is the path of something that is sold/,
      );
    }
  });
});

describe('acg validate of a wrong configuration', () => {
  const wrong: Changes = { 'server.port': 'x', 'resources.report.pricing.amount': '0' };

  it('names the file, the lines and all that is wrong with the environment, in one pass', async () => {
    const folder = await temporaryDirectory(ends, 'acg-validate-');
    writeFileSync(join(folder, 'shop.json'), JSON.stringify(changed(wrong), null, 2));
    const env = { LOG_LEVEL: 'loud', GATEWAY_DRAIN_SECONDS: 'x', GATEWAY_APP_PROBE_STARTUP: 'ftp://x' };
    const { code, lines, errors } = await acg(folder, ['validate', '--config', 'shop.json'], env);
    assert.deepEqual([code, lines], [78, []]);
    assert.equal((await acg(folder, ['serve', '--config', 'shop.json'], env)).errors, errors, 'so does a start');
    assert.deepEqual(
      errors.split('\n').map((line) => line.replace(/: must be.*/, ': must be')),
      [
        'the configuration is refused:',
        '  shop.json:50:9 resources.report.pricing.amount: must be',
        '  shop.json:56:5 server.port: must be',
        '  LOG_LEVEL: must be',
        '  GATEWAY_DRAIN_SECONDS: must be',
        '  GATEWAY_APP_PROBE_STARTUP: must be',
        '',
      ],
    );
  });

  it('names all that only an accepted configuration can be wrong with, in one pass', async () => {
    const folder = await temporaryDirectory(ends, 'acg-validate-');
    writeFileSync(join(folder, 'config.yaml'), JSON.stringify(changed({}), null, 2));
    const env = {
      GATEWAY_DRAIN_BUDGET_SECONDS: '1',
      GATEWAY_APP_PROBE_LIVENESS: 'http://127.0.0.1:3000/reports/Berlin',
    };
    const { code, errors } = await acg(folder, ['validate'], env);
    assert.equal(code, 78);
    assert.equal((await acg(folder, ['serve'], env)).errors, errors, 'so does a start');
    assert.match(errors, /^ {2}GATEWAY_DRAIN_BUDGET_SECONDS: is 1, /m);
    assert.match(errors, /^ {2}GATEWAY_APP_PROBE_LIVENESS: is the path of something that is sold/m);
  });

  it('is what a start says in its log, without the lines', async () => {
    const folder = await temporaryDirectory(ends, 'acg-validate-');
    writeFileSync(join(folder, 'config.yaml'), JSON.stringify(changed(wrong), null, 2));
    const { lines } = await acg(folder, ['serve']);
    assert.match(lines.join(), /config\.yaml:56:5 server\.port: must be a port/);
    assert.doesNotMatch(lines.join(), / \| /);
  });
});

describe('the example of a web site', () => {
  const path = resolve(EXAMPLE, 'config.yaml');

  it('has no warning of its routes', async () => {
    const folder = await temporaryDirectory(ends, 'acg-validate-');
    const own = readFileSync(path, 'utf8').replace(`"\${PAY_TO}"`, `"${PAYEE}"`);
    writeFileSync(join(folder, 'config.yaml'), own);
    const { code, errors, lines } = await acg(folder, ['validate', '--verbose']);
    assert.equal(code, 0);
    assert.match(errors, /^warning: storage\.sealing\.keys.*\n$/);
    assert.ok(lines.includes('unread bodies that pass: at most 256 MB'));
  });

  it('spells out defaults, but for what it excludes and the header it takes', () => {
    const { backend, limits } = loadConfig({ path, env: { PAY_TO: PAYEE } });
    assert.deepEqual(backend.originHeaders, ['accept']);
    const { exclude, ...usual } = backend.passthrough ?? assert.fail('it is off');
    assert.equal(exclude.length, 2);
    assert.deepEqual(usual, {
      ...{ include: undefined, allow: [], allowHeaders: [] },
      ...{ websocket: true, idleTimeoutMs: 60_000, preserveHost: true },
    });
    assert.deepEqual([limits.maxPassthrough, limits.maxUpgrades], [256, 256]);
  });
});
