import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { prepareGateway } from '../../support/gateway-process.ts';
import { acg, acgOnTerminal } from '../acg.ts';
import { type CheckedWorld, openCheckedWorld } from './checked-world.ts';

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
