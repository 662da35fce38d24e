import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type Check, failed, passed, runChecks, skipped, warned } from '../../../src/cli/doctor/check.ts';
import type { ConfigObject } from '../../support/config.ts';
import { prepareGateway } from '../../support/gateway-process.ts';
import { answerJson, serveHttp } from '../../support/http-server.ts';
import { acg, acgOnTerminal } from '../acg.ts';
import { type CheckedWorld, openCheckedWorld } from './checked-world.ts';

const silent = () => undefined;
const statusesOf = async (checks: readonly Check[]) =>
  (await runChecks(checks, silent)).map(({ check, status, message }) => `${check} ${status} ${message}`);

describe('the checks of acg doctor', () => {
  it('run side by side, and are told in their order', async () => {
    const second = Promise.withResolvers<void>();
    const told: (readonly string[])[] = [];
    const checks: Check[] = [
      {
        name: 'first',
        async run() {
          await second.promise;
          return passed('one');
        },
      },
      {
        name: 'second',
        async run() {
          second.resolve();
          return [passed('two'), warned('three', 'act')];
        },
      },
    ];
    const findings = await runChecks(checks, (names) => told.push(names));
    assert.deepEqual(findings, [
      { check: 'first', status: 'PASS', message: 'one' },
      { check: 'second', status: 'PASS', message: 'two' },
      { check: 'second', status: 'WARN', message: 'three', remedy: 'act' },
    ]);
    assert.deepEqual(
      told.map(({ length }) => length),
      [2, 1, 0],
    );
  });

  it('are skipped behind one that fails or is skipped, not behind a warning', async () => {
    const run = async () => passed('ran');
    const checks: Check[] = [
      { name: 'warns', run: async () => warned('w', 'act') },
      { name: 'fails', run: async () => [passed('p'), failed('f', 'act')] },
      { name: 'skips', run: async () => skipped('s') },
      { name: 'a', needs: ['warns'], run },
      { name: 'b', needs: ['warns', 'fails'], run },
      { name: 'c', needs: ['skips'], run },
      { name: 'd', needs: ['b'], run },
    ];
    assert.deepEqual((await statusesOf(checks)).slice(-4), [
      'a PASS ran',
      'b SKIP see fails',
      'c SKIP see skips',
      'd SKIP see b',
    ]);
  });

  it('fail with what they throw, and when no answer comes in their time', async () => {
    const checks: Check[] = [
      {
        name: 'throws',
        run() {
          throw new Error('broken');
        },
      },
      { name: 'hangs', run: () => new Promise(() => undefined) },
    ];
    const findings = await runChecks(checks, silent, 50);
    assert.deepEqual(
      findings.map(({ check, status, message }) => `${check} ${status} ${message}`),
      ['throws FAIL broken', 'hangs FAIL no answer within 0.05 s'],
    );
  });
});

const ends = new AsyncDisposableStack();
let world: CheckedWorld;
before(async () => {
  world = await openCheckedWorld(ends);
  const { start } = await prepareGateway(world.folder, world.parts);
  ends.adopt(await start(), async ({ stop }) => void (await stop()));
});
after(() => ends.disposeAsync());

const HEALTHY = {
  configuration: 'PASS',
  redis: 'PASS',
  'redis rights': 'PASS',
  'redis write': 'PASS',
  'redis eviction': 'PASS',
  'redis append-only file': 'PASS',
  'redis fsync': 'PASS',
  backend: 'PASS',
  'backend exposure': 'PASS',
  // The input of one resource has no example.
  'sold paths': 'SKIP',
  'chain node': 'PASS',
  'chain head': 'PASS',
  asset: 'PASS',
  facilitator: 'PASS',
  clock: 'PASS',
  'running gateway': 'PASS',
  // The public address of this world is loopback.
  certificate: 'SKIP',
};

describe('acg doctor', () => {
  it('finds nothing in a healthy world, sells nothing there and leaves nothing behind', async () => {
    const before = await world.admin.keys('*trial*');
    assert.deepEqual((await world.examined()).statuses, HEALTHY);
    assert.deepEqual(await world.admin.keys('*trial*'), before);
    assert.deepEqual(
      world.backend.requests.map(({ method, url }) => `${method} ${url}`),
      ['GET /cities'],
    );
  });

  it('is one JSON document in a pipe, and a table on a terminal with progress that is erased', async () => {
    const path = await world.configured();
    const [pipe, terminal] = await Promise.all([
      acg(world.folder, ['doctor', '--config', path]),
      acgOnTerminal(world.folder, ['doctor', '--config', path], { NO_COLOR: '1' }),
    ]);
    const { ok, findings } = JSON.parse(pipe.lines.join('\n'));
    assert.deepEqual([pipe.code, ok, pipe.errors], [0, true, '15 PASS, 0 WARN, 0 FAIL, 2 SKIP\n']);
    assert.deepEqual(
      Object.fromEntries(findings.map(({ check, status }: { check: string; status: string }) => [check, status])),
      HEALTHY,
    );
    assert.equal(terminal.code, 0);
    assert.match(terminal.lines[0] ?? '', /^STATUS {2}CHECK +FOUND$/);
    assert.equal(terminal.lines.length, 1 + Object.keys(HEALTHY).length);
    assert.match(terminal.errors, /looking at redis, /);
    assert.ok(terminal.errors.endsWith('\r\u001b[K15 PASS, 0 WARN, 0 FAIL, 2 SKIP\n'), terminal.errors);
  });

  it('ends with 1 when something fails, and each line has what to do', async () => {
    const path = await world.configured({ backend: { baseUrl: 'http://127.0.0.1:1' } });
    const { code, lines } = await acgOnTerminal(world.folder, ['doctor', '--config', path], { NO_COLOR: '1' });
    assert.equal(code, 1);
    assert.deepEqual(
      lines.filter((line) => line.startsWith('FAIL')).map((line) => line.replaceAll(/ {2,}/g, '|')),
      ['FAIL|backend|http://127.0.0.1:1 does not answer: nothing listens there; start it, or correct backend.baseUrl'],
    );
  });

  it('a refused configuration is all that it can tell, problem by problem', async () => {
    const { statuses, text } = await world.examined({ server: { port: 'many' }, merchant: { name: undefined } });
    assert.deepEqual(statuses, { configuration: 'FAIL' });
    assert.match(text, /^FAIL configuration: server\.port: /m);
    assert.match(text, /^FAIL configuration: merchant/m);
    const missing = await acg(world.folder, ['doctor', '--config', 'nowhere.yaml']);
    assert.equal(missing.code, 1);
    assert.match(missing.lines.join(), /nowhere\.yaml cannot be read/);
  });

  it('a warning of the configuration is a warning here', async () => {
    const { statuses, text } = await world.examined({ server: { adminToken: 'short-token' } });
    assert.deepEqual(statuses, { ...HEALTHY, configuration: 'WARN' });
    assert.match(text, /^WARN configuration: server\.adminToken: shorter than .*; use a long random token$/m);
  });

  it('shows no secret, whatever fails', async () => {
    const key = 'a-key-in-the-path-of-the-node';
    const password = 'password-of-the-store';
    const token = 'token-of-the-facilitator';
    const { text } = await world.examined({
      storage: { redis: { url: `redis://user:${password}@127.0.0.1:1` } },
      payments: {
        x402: {
          rpcUrl: `http://127.0.0.1:1/v1/${key}`,
          facilitator: { url: `http://127.0.0.1:1/${key}`, auth: { type: 'bearer', token } },
        },
      },
    });
    assert.match(text, /^FAIL redis: /m);
    assert.match(text, /^FAIL chain node: /m);
    assert.match(text, /^FAIL facilitator: /m);
    for (const secret of [key, password, token]) assert.ok(!text.includes(secret), secret);
  });
});

describe('the check of the gateway that runs here', () => {
  const payTo = privateKeyToAddress(generatePrivateKey());
  const price = { market_report: { pricing: { amount: '0.02' } } };
  const unit = { pointer: '/city', min: '0.01', max: '1' };
  const byInput = { market_report: { pricing: { by: { unit } } } };
  const cases: readonly (readonly [what: string, changes: ConfigObject, says: RegExp])[] = [
    ['another payee', { payments: { x402: { payTo } } }, new RegExp(`its payments.x402.payTo is 0x.*, not ${payTo}`)],
    ['another price', { resources: price }, /it sells market_report for 0\.01 TUSD, not 0\.02 TUSD/],
    ['a price that follows the input', { resources: byInput }, /for 0\.01 TUSD, not 0\.01 TUSD by \{"unit":/],
    ['a resource that is gone', { resources: { cities: undefined } }, /it sells cities; restart it/],
    ['another merchant', { merchant: { id: 'other-shop' } }, /its merchant\.id is market-shop, not other-shop/],
  ];
  for (const [what, changes, says] of cases)
    it(`${what} shows in it alone, as a warning`, async () => {
      const healthy = (await world.examined()).statuses;
      assert.equal(healthy['running gateway'], 'PASS');
      const { statuses, text } = await world.examined(changes);
      assert.deepEqual(statuses, { ...healthy, 'running gateway': 'WARN' });
      assert.match(text, says);
      assert.match(text, /runs another configuration: .*; restart it with this configuration/);
    });

  it('is skipped where nothing listens, and fails where something else does', async () => {
    const healthy = (await world.examined()).statuses;
    const free = await world.examined({ server: { port: 1 } });
    assert.deepEqual(free.statuses, { ...healthy, 'running gateway': 'SKIP' });
    const stranger = ends.adopt(
      await serveHttp(({ response }) => answerJson(response, 200, { merchant: 'none' })),
      ({ stop }) => stop(),
    );
    const taken = await world.examined({ server: { port: Number(new URL(stranger.url).port) } });
    assert.deepEqual(taken.statuses, { ...healthy, 'running gateway': 'FAIL' });
    assert.match(taken.text, /is taken by something that is no gateway; end it/);
  });

  it('asks for the host that the gateway serves', async () => {
    await using own = new AsyncDisposableStack();
    const { overrides = {}, ports: _ports, ...parts } = world.parts;
    const server = { allowedHosts: ['shop.example'] };
    const { start, config } = await prepareGateway(world.folder, { ...parts, overrides: { ...overrides, server } });
    own.adopt(await start(), async ({ stop }) => void (await stop()));
    const { statuses } = await world.examined({ server: config['server'] });
    assert.equal(statuses['running gateway'], 'PASS');
  });
});
