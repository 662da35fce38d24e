import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { TEST_BUYER } from '../../../src/payments/pricing/networks.ts';
import { ended } from '../../../tools/local-world/child.ts';
import { TOOLS } from '../../cli/acg.ts';
import { answerJson, serveHttp } from '../../support/http-server.ts';
import { freePorts } from '../../support/ports.ts';
import { childrenOf, commandOf, isThere, startCommand, startProgram, until } from '../../support/program.ts';
import { devWorlds } from './dev-world.ts';

const needsNamespaces = {
  skip: spawnSync('unshare', ['-rm', 'true']).status === 0 ? false : 'this machine gives no mount namespace to a user',
};
/** Of an account of anvil, as the runbook has it. */
const LOCAL_PAYEE_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';
const REPORT = '/api/resources/market_report/invoke';

describe('acg dev without a configuration', { timeout: 240_000 }, () => {
  const worlds = devWorlds();

  it('sells a sample: it prints addresses, the TEST buyer and three commands that work; Ctrl-C ends it without remains', async () => {
    const world = await worlds.introduced();
    const printed = world.printed();
    assert.ok(printed.includes(`TEST key ${TEST_BUYER.key}, refused on every other chain`));
    const console_ = /Console +(\S+) +token (\S+)/.exec(printed) ?? assert.fail(printed);
    assert.equal((await fetch(console_[1] ?? '')).status, 200);
    const [call, pay, receipts] = printed.split('\n').filter((line) => /^ {2}(?:curl|npm) /.test(line));
    const run = (command = '') => spawnSync('bash', ['-c', command], { encoding: 'utf8' });
    assert.match(run(call).stdout, /^HTTP\/1\.1 402 /);
    const bought = run(`${pay} --yes`);
    assert.equal(bought.stdout, '{"city":"Berlin","currency":"EUR","price":"12.50","volume":340}');
    const transaction = /transaction (0x\w+)/.exec(bought.stderr)?.[1];
    assert.ok(transaction !== undefined, bought.stderr);
    assert.ok(run(receipts).stdout.includes(transaction));
    await until('the line of the purchase', () => world.printed().includes(`settled by ${transaction}`));
    assert.match(
      world.printed(),
      /^\d\d:\d\d:\d\d {2}POST +\S+ +402 +\d+ ms {2}market_report {2}asked for 0\.01 TUSD$/m,
    );
    assert.match(
      world.printed(),
      /^\d\d:\d\d:\d\d {2}POST +\S+ +200 +\d+ ms {2}market_report {2}paid 0\.01 TUSD {2}settled by 0x\w{64}$/m,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal alone gets colours.
    assert.doesNotMatch(world.printed(), /\x1b/);

    // The section of the runbook on refunds, with the resource that fails.
    const acg = (words: string) => run(`${/npm run -s acg -- /.exec(pay ?? '')?.[0]}${words}`);
    const failed = acg(`pay ${world.baseUrl}/api/resources/broken_report/invoke --wait 0 --yes`);
    const receipt = /receipt_[\w-]+/.exec(failed.stderr)?.[0] ?? assert.fail(failed.stderr);
    const key = join(mkdtempSync(join(worlds.folder, 'payee-')), 'payee.key');
    writeFileSync(key, LOCAL_PAYEE_KEY);
    const config = / --config (\S+)/.exec(printed)?.[1];
    const refunded = acg(`refunds pay ${receipt} --now --yes --key-file ${key} --config ${config}`);
    assert.equal(JSON.parse(refunded.stdout || '{}').receiptId, receipt, refunded.stderr);

    const processes = childrenOf(world.child);
    assert.ok(processes.some((pid) => commandOf(pid).some((word) => word.endsWith('anvil'))));
    world.child.kill('SIGINT');
    assert.deepEqual(await ended(world.child), { code: 0, signal: null });
    await until('the end of its processes', () => !processes.some(isThere));
    assert.deepEqual(worlds.remains(), []);
    assert.equal(world.errors(), '');
  });

  it('--json: the log as the gateway writes it on stdout, all else on stderr', async () => {
    const world = await worlds.introduced(['--json']);
    await fetch(`${world.baseUrl}${REPORT}`, { method: 'POST' });
    await until('the line of the call', () => world.printed().includes(REPORT));
    for (const line of world.printed().split('\n').filter(Boolean))
      assert.equal(typeof JSON.parse(line), 'object', line);
    assert.match(world.errors(), /Sample merchant, in a local world/);
  });

  it('a taken port: one line with the option that moves it, exit 1, and nothing is left or ended', async () => {
    const first = await worlds.introduced();
    for (const [option, port] of [
      ['--port', first.ports.agents],
      ['--management-port', first.ports.management],
      ['--rpc-port', first.ports.rpc],
    ] as const) {
      const { child, errors } = await worlds.start([option, String(port)]);
      assert.equal((await ended(child)).code, 1);
      assert.equal(errors(), `Port ${port} is taken. Use ${option} for another one.\n`);
    }
    assert.equal((await fetch(`${first.baseUrl}/health`)).status, 200);
  });

  it('two worlds with one data folder share no file', async () => {
    const [one, other] = [await worlds.introduced(['--data', 'shared']), await worlds.introduced(['--data', 'shared'])];
    for (const world of [one, other]) {
      const { code, errors } = await worlds.acg(['pay', `${world.baseUrl}/reports/Berlin`, '--yes']);
      assert.equal(code, 0, errors);
    }
    const databases = readdirSync(join(worlds.folder, 'shared')).filter((name) => name.endsWith('.db'));
    assert.deepEqual(databases.sort(), [`world-${one.ports.agents}.db`, `world-${other.ports.agents}.db`].sort());
  });

  it('killed with SIGKILL, it takes chain and gateway along', async () => {
    const { child } = await worlds.introduced();
    const processes = childrenOf(child);
    assert.ok(processes.length >= 3, 'a chain, a gateway, and what watches them');
    child.kill('SIGKILL');
    await until('the end of its processes', () => !processes.some(isThere));
  });

  it('a part that ends by itself ends it with one line', async () => {
    for (const [word, line] of [
      ['serve', 'the gateway ended by itself (SIGKILL)\n'],
      ['--auto-impersonate', 'the chain ended by itself\n'],
    ] as const) {
      const { child, errors } = await worlds.introduced();
      process.kill(childrenOf(child).find((pid) => commandOf(pid).includes(word)) ?? assert.fail(word), 'SIGKILL');
      assert.equal((await ended(child)).code, 1);
      assert.equal(errors(), line);
      assert.deepEqual(worlds.remains(), []);
    }
  });

  it('a disk that is full ends it with one line, at the start and later', needsNamespaces, async () => {
    for (const [size, line] of [
      // In the words of SQLite, which differ with the byte that has no room.
      ['32k', /^The gateway did not start: .*world-\d+\.db cannot be used: .*\n$/],
      ['400k', /^the disk is full: .*world-\d+\.db\n$/],
    ] as const) {
      const [agents = 0, management = 0, rpc = 0] = await freePorts(3);
      const ports = ['--port', agents, '--management-port', management, '--rpc-port', rpc].join(' ');
      const script = `mount -t tmpfs -o size=${size} tmpfs "$TMPDIR" && exec '${process.execPath}' '${TOOLS}' dev ${ports}`;
      const env = { TMPDIR: mkdtempSync(join(worlds.folder, 'disk-')) };
      const { child, errors } = startCommand('unshare', ['-rm', 'bash', '-c', script], { cwd: worlds.folder, env });
      const ending = ended(child);
      // Each call is an event in the database.
      const call = () => fetch(`http://127.0.0.1:${agents}${REPORT}`, { method: 'POST' }).catch(() => delay(50));
      for (let over = false; !over; ) over = await Promise.race([ending.then(() => true), call().then(() => false)]);
      assert.equal((await ending).code, 1);
      assert.match(errors(), line);
    }
  });

  it('a reader that goes away ends it in order', async () => {
    const world = await worlds.introduced();
    world.child.stdout?.destroy();
    const ending = ended(world.child);
    const call = () => fetch(`${world.baseUrl}${REPORT}`, { method: 'POST' }).catch(() => delay(50));
    for (let over = false; !over; ) over = await Promise.race([ending.then(() => true), call().then(() => false)]);
    assert.deepEqual(await ending, { code: 0, signal: null });
    assert.deepEqual([world.errors(), worlds.remains()], ['', []]);
  });

  it('--backend and --sell: a file that is there is not read, which is told; one name for the money', async () => {
    const backend = await serveHttp(({ response }) => answerJson(response, 200, { found: 'socks' }));
    const home = mkdtempSync(join(worlds.folder, 'home-'));
    writeFileSync(join(home, 'config.yaml'), 'no configuration');
    const config = { AGENT_COMMERCE_CONFIG: join(home, 'config.yaml') };
    try {
      const world = await worlds.introduced(['--backend', `${backend.url}/`, '--sell', 'GET /search?q=socks'], config);
      assert.match(world.printed(), /Configuration +\/\S+\/config\.yaml is not read: /);
      assert.match(world.printed(), /prices in USDC/);
      for (const over of [[], ['--mcp'], ['--a2a']]) {
        const bought = await worlds.acg([
          'pay',
          world.baseUrl,
          '{"q":"socks"}',
          '--resource',
          'search',
          '--yes',
          ...over,
        ]);
        assert.deepEqual([bought.code, bought.output.toString()], [0, '{"found":"socks"}'], bought.errors);
        assert.match(bought.errors, /price {4}0\.01 USDC\n.*\npaid 0\.01 USDC\n/s);
      }
      await until('the lines of the purchases', () => world.printed().split('paid 0.01 USDC').length > 3);
    } finally {
      await backend.stop();
    }
  });

  it('an option that is none: one line, exit 64', async () => {
    for (const [args, words] of [
      [
        ['--backend', '127.0.0.1:3000', '--sell', '/search'],
        /^the URL of your service must be an absolute .*; did you mean http:\/\/127\.0\.0\.1:3000\?\n$/,
      ],
      [['--backend', 'htp://localhost:3000', '--sell', '/search'], /; did you mean http:\/\/localhost:3000\?\n$/],
      [['--port', 'x'], /^option '--port <number>' argument 'x' is invalid\. It must be a port, 0 to 65535; .*\n$/],
      [['--prot', '1'], /^unknown option '--prot' \(did you mean --port\?\); acg dev --help has the options\n$/],
    ] as const) {
      const { code, errors } = await worlds.acg(['dev', ...args]);
      assert.equal(code, 64);
      assert.match(errors, words);
    }
  });
});

describe('acg dev with a configuration', { timeout: 240_000 }, () => {
  const worlds = devWorlds();
  const file = (name: string) => join(worlds.folder, name);

  it('one that there is not: exit 78, one line', async () => {
    const { code, errors } = await worlds.acg(['dev', '--config', 'none.yaml']);
    assert.equal(code, 78);
    assert.match(errors, /none\.yaml cannot be read/);
  });

  it('one that is refused: every problem, before anything starts', async () => {
    writeFileSync(
      file('wrong.yaml'),
      'version: 1\nmerchant: { id: "no id" }\nresource: {}\nserver: { allowedHosts: ["a b"] }\n',
    );
    const { code, errors } = await worlds.acg(['dev', '--config', 'wrong.yaml']);
    assert.equal(code, 78);
    for (const place of ['2:13 merchant.id', '3:1 resource', '4:26 server.allowedHosts[0]', '1:1 backend'])
      assert.ok(errors.includes(` wrong.yaml:${place}: `), errors);
  });

  it('one of real money runs as it is, without any of its secrets, on the first of two networks; a merchant who is away is told in one line', async () => {
    const [merchant = 0] = await freePorts(1);
    const { code } = await worlds.acg([
      ...['init', '--network', 'base', '--out', 'base.yaml', '--backend', `http://127.0.0.1:${merchant}`],
      ...['--sell', 'GET /reports/Berlin'],
    ]);
    assert.equal(code, 0);
    const other =
      '  - { network: polygon, allowMainnet: true, rpcUrl: "https://rpc.example", facilitator: { mode: remote, url: "https://f.example" } }';
    const listed = readFileSync(file('base.yaml'), 'utf8').replace('    network: base', '  - network: base');
    writeFileSync(file('base.yaml'), listed.replace('\nresources:', `\n${other}\nresources:`));
    const world = await worlds.introduced(['--config', 'base.yaml'], { REDIS_URL: 'redis://127.0.0.1:1' });
    assert.match(world.printed(), /\n +a local world has one chain: left out are payments\.x402\[1\] \(polygon\)\n/);
    assert.match(world.printed(), new RegExp(`Merchant +http://127\\.0\\.0\\.1:${merchant} +does not answer yet`));
    const asked = await fetch(`${world.baseUrl}/reports/Berlin`);
    const { payment } = (await asked.json()) as {
      readonly payment: { readonly network: string; readonly currency: string };
    };
    assert.deepEqual([payment.network, payment.currency], ['eip155:31337', 'USDC']);
    const away = await worlds.acg(['pay', `${world.baseUrl}/reports/Berlin`, '--yes', '--wait', '0']);
    assert.equal(away.code, 1);
    assert.match(away.errors, /not delivered.*: 503/);
    const service = await serveHttp(({ response }) => answerJson(response, 200, { open: true }), merchant);
    try {
      const bought = await worlds.acg(['pay', `${world.baseUrl}/reports/Berlin`, '--yes']);
      assert.deepEqual([bought.code, bought.output.toString()], [0, '{"open":true}'], bought.errors);
    } finally {
      await service.stop();
    }
  });

  it('runs anew when the file changes; a change that is refused, or does not start, changes nothing and says why', async () => {
    const backend = await serveHttp(({ response }) => answerJson(response, 200, {}));
    const taken = await serveHttp(({ response }) => answerJson(response, 200, {}));
    await worlds.acg(['init', '--backend', backend.url, '--sell', 'GET /reports/Berlin', '--out', 'mine.yaml']);
    const text = readFileSync(file('mine.yaml'), 'utf8');
    const [agents = 0] = await freePorts(1);
    // The port is the configuration's own, so that a change may move it.
    const moved = (port: number | string) => text.replace('\nserver: {', `\nserver: { port: ${port},`);
    writeFileSync(file('mine.yaml'), moved(agents));
    const [management = 0, rpc = 0] = await freePorts(2);
    const ports = ['--management-port', management, '--rpc-port', rpc].map(String);
    const world = startProgram(TOOLS, ['dev', '--config', 'mine.yaml', ...ports], { cwd: worlds.folder });
    try {
      await until('the introduction', () => {
        assert.equal(world.child.exitCode, null, world.errors());
        return world.printed().includes('Ctrl-C ends everything');
      });
      const priceAt = async (port: number): Promise<string> => {
        const response = await fetch(`http://127.0.0.1:${port}/reports/Berlin`);
        return ((await response.json()) as { readonly payment: { readonly amount: string } }).payment.amount;
      };
      const bought = await worlds.acg([
        'pay',
        `http://127.0.0.1:${agents}/reports/Berlin`,
        '--yes',
        '--proof',
        'first',
      ]);
      assert.equal(bought.code, 0, bought.errors);

      const told = async (words: string, change: () => void): Promise<void> => {
        const before = world.printed().length;
        change();
        await until(words, () => world.printed().slice(before).includes(words));
      };
      await told('mine.yaml has changed: the gateway runs with it', () =>
        writeFileSync(file('mine.yaml'), moved(agents).replace('$0.01', '$$0.02')),
      );
      assert.equal(await priceAt(agents), '0.02');
      const again = await worlds.acg(['pay', `http://127.0.0.1:${agents}/reports/Berlin`, '--proof', 'first']);
      assert.equal(again.code, 0, 'what was paid before the change stays paid');

      await told('resources.berlin.pricing: ', () =>
        writeFileSync(file('mine.yaml'), moved(agents).replace('$0.01', 'much')),
      );
      assert.equal(await priceAt(agents), '0.02');
      await told('server.allowedHosts[0]: ', () =>
        writeFileSync(file('mine.yaml'), moved(agents).replace('\nserver: {', '\nserver: { allowedHosts: ["a b"],')),
      );
      assert.equal(await priceAt(agents), '0.02');
      await told(`Port ${new URL(taken.url).port} is taken.`, () =>
        writeFileSync(file('mine.yaml'), moved(new URL(taken.url).port)),
      );
      assert.equal(await priceAt(agents), '0.02');

      const [next = 0] = await freePorts(1);
      await told(`the gateway runs with it at http://127.0.0.1:${next}`, () =>
        writeFileSync(file('mine.yaml'), moved(next)),
      );
      assert.equal(await priceAt(next), '0.01');
      world.child.kill('SIGINT');
      assert.deepEqual(await ended(world.child), { code: 0, signal: null });
    } finally {
      world.child.kill('SIGKILL');
      await Promise.all([backend.stop(), taken.stop()]);
    }
  });
});
