import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type Changes, changed, PAYEE } from '../config/document/document.ts';
import { acg, type CommandRun } from './acg.ts';

const EXAMPLE = 'deploy/examples/website';
const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

async function validate(changes: Changes): Promise<CommandRun> {
  const folder = await temporaryDirectory(ends, 'acg-validate-');
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(changed(changes)));
  return acg(folder, ['validate']);
}

describe('acg validate', () => {
  it('prints one line where nothing passes and nothing is sold in place', async () => {
    const { code, lines, errors } = await validate({});
    assert.deepEqual([code, lines.length, errors], [0, 1, '']);
    assert.match(lines[0] ?? '', /^valid: 1 resources, 1 of them paid; x402 on eip155:84532 \(testnet\); no mandates;/);
  });

  it('says how many workers there are and what memory they take, and refuses what they cannot share', async () => {
    const redis: Changes = { storage: { redis: { url: 'redis://127.0.0.1:1' } } };
    const one = await validate({});
    assert.match(one.lines[0] ?? '', /; workers: 1; drain:/);
    const three = await validate({ ...redis, 'server.workers': 3 });
    assert.match(three.lines[0] ?? '', /; workers: 3, which take about 470 MB under load; drain:/);
    const refused = await validate({ ...redis, 'server.workers': 3, 'limits.maxStreams': 2 });
    assert.equal(refused.code, 78);
    assert.match(refused.errors, /limits\.maxStreams: must be at least 3, of which each worker gets its part/);
  });

  it('prints the table of routes behind that line, and warnings apart from it', async () => {
    const { code, lines, errors } = await validate({
      'backend.passthrough': { enabled: true },
      'resources.report.expose': ['origin'],
    });
    assert.equal(code, 0);
    assert.match(lines[0] ?? '', /^valid: 1 resources/);
    assert.match(lines[1] ?? '', /^path +method +becomes +where$/);
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

describe('the example of a web site', () => {
  const path = resolve(EXAMPLE, 'config.yaml');

  it('has no warning of its routes', async () => {
    const folder = await temporaryDirectory(ends, 'acg-validate-');
    const own = readFileSync(path, 'utf8').replace(`"\${PAY_TO}"`, `"${PAYEE}"`);
    writeFileSync(join(folder, 'config.yaml'), own);
    const { code, errors } = await acg(folder, ['validate']);
    assert.equal(code, 0);
    assert.match(errors, /^warning: storage\.sealing\.keys.*\n$/);
  });

  it('spells out defaults, but for what it excludes and the header it takes', () => {
    const { backend, limits } = loadConfig({ path, env: { PAY_TO: PAYEE } });
    assert.deepEqual(backend.originHeaders, ['accept']);
    const { exclude, ...usual } = backend.passthrough ?? assert.fail('it is off');
    assert.equal(exclude.length, 3);
    assert.deepEqual(usual, { include: undefined, websocket: true, idleTimeoutMs: 60_000, preserveHost: true });
    assert.deepEqual([limits.maxPassthrough, limits.maxUpgrades], [256, 256]);
  });
});
