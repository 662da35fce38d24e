import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, describe, it } from 'node:test';
import { configPath, MAX_CONFIG_BYTES, MAX_YAML_BYTES } from '../../src/config/document/parse.ts';
import { loadConfig, parseConfig } from '../../src/config/load.ts';
import { configWarnings } from '../../src/config/warnings.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { changed, load, PAYEE } from './document/document.ts';
import { file, folder } from './files.ts';

const SAMPLE = new URL('../../deploy/examples/config.yaml', import.meta.url).pathname;

describe('the sample configuration', () => {
  it('loads and compiles', () => {
    const config = loadConfig({ path: SAMPLE, env: { PAY_TO: PAYEE } });
    assert.equal(config.x402?.mode, 'testnet');
    assert.deepEqual([...compileCatalogue(config).byId.keys()], ['market_report', 'order_quote']);
  });
  it('loads with what it shows of the passthrough', () => {
    const sample = readFileSync(SAMPLE, 'utf8');
    const shown = sample.replace(/^ {2}# passthrough:(?:.*\n {2}# {3})*.*\n {2}# originHeaders.*$/m, (lines) =>
      lines.replaceAll(/^ {2}# /gm, '  '),
    );
    const { backend } = parseConfig(shown, { PAY_TO: PAYEE });
    assert.deepEqual(backend.passthrough, {
      ...{ include: ['/shop', '/img/{size}'], exclude: ['/shop/staff'] },
      ...{ allow: ['/shop/reports'], allowHeaders: [] },
      ...{ websocket: true, idleTimeoutMs: 60_000, preserveHost: true },
    });
    assert.deepEqual(backend.originHeaders, ['accept']);
  });
  it('does not load without a payee', () =>
    assert.throws(
      () => loadConfig({ path: SAMPLE, env: {} }),
      (error) => error instanceof ConfigError && /payments\.x402\.payTo: needs .* PAY_TO/.test(error.message),
    ));
});

describe('the path of the configuration', () => {
  it('is the argument, else AGENT_COMMERCE_CONFIG, else config.yaml', () => {
    assert.equal(configPath('a.yaml', { AGENT_COMMERCE_CONFIG: 'b.yaml' }), 'a.yaml');
    assert.equal(configPath(undefined, { AGENT_COMMERCE_CONFIG: 'b.yaml' }), 'b.yaml');
    assert.equal(configPath(undefined, {}), 'config.yaml');
  });
  const UNREADABLE: readonly (readonly [string, () => string, RegExp])[] = [
    ['no file', () => join(folder, 'absent'), /cannot be read \(ENOENT\)/],
    ['a folder', () => folder, /not a regular file/],
    ['a device', () => '/dev/zero', /not a regular file/],
    ['no UTF-8', () => file('latin1', Uint8Array.of(0x61, 0x3a, 0xff)), /not UTF-8/],
    ['too large', () => file('large', ' '.repeat(MAX_CONFIG_BYTES + 1)), /larger than 16777216 bytes/],
  ];
  for (const [title, path, message] of UNREADABLE)
    it(`refuses ${title}`, () => assert.throws(() => loadConfig({ path: path(), env: {} }), message));
});

describe('a document that is too large for the YAML parser', () => {
  const large = 'x'.repeat(MAX_YAML_BYTES);
  const CASES: readonly (readonly [string, string, RegExp])[] = [
    ['is read as JSON', JSON.stringify({ large }), /known here: version/],
    ['is refused as YAML', `large: ${large}`, /more than 1048576 bytes, so it must be JSON, and is not well-formed/],
    [
      'is refused as JSON that is not well-formed',
      `{"large":"${large}",}`,
      /column 1048589 document: .* is not well-formed/,
    ],
    ['is refused as JSON with a name twice', `{"a":"${large}","a":1}`, /column 1048585 a: stands twice in one mapping/],
  ];
  for (const [title, text, message] of CASES) it(title, () => assert.throws(() => parseConfig(text, {}), message));
});

describe('what a document leaves out', () => {
  it('gets the published defaults', () => {
    const config = load({});
    assert.deepEqual(config.server, {
      host: '0.0.0.0',
      port: 8402,
      adminTokens: [],
      rotation: undefined,
      allowedOrigins: [],
      allowedHosts: undefined,
      trustProxy: 0,
      maxHeadBytes: 4_096,
    });
    assert.deepEqual(config.management, { host: '0.0.0.0', port: 8403 });
    assert.deepEqual(config.limits, {
      maxInFlight: 512,
      maxStreams: 32,
      maxPassthrough: 256,
      maxUpgrades: 256,
      maxBufferedBytes: 33_554_432,
      unpaidWork: { perResource: 64, perNetwork: 32, all: 256, windowMs: 3_600_000 },
      rate: undefined,
    });
    assert.deepEqual([config.storage.eventsMaxLength, config.storage.receiptsMaxLength], [10_000, 50_000]);
    assert.deepEqual(config.protocols, {
      http: { enabled: true },
      mcp: { enabled: false, mountPath: '/mcp' },
      a2a: { enabled: false, mountPath: '/a2a', errorProfile: 'gateway' },
      acp: { enabled: false, mountPath: '/acp' },
    });
    const [report] = config.resources;
    assert.deepEqual(report?.exposedVia, ['http']);
    assert.deepEqual(report?.paymentMethods, ['x402']);
    assert.deepEqual(report?.pricing, { type: 'fixed', amount: '0.01', currency: 'USDC', units: 10_000n });
    assert.deepEqual([report?.backend.timeoutMs, report?.backend.maxResponseBytes], [10_000, 10_485_760]);
    assert.equal(config.x402?.maxTimeoutSeconds, 120);
  });
});

describe('what is derived', () => {
  it('joins the path of the backend URL with that of the resource', () => {
    const config = load({ 'backend.baseUrl': 'http://localhost:3000/v2/' });
    assert.equal(config.backend.origin, 'http://localhost:3000');
    assert.equal(config.resources[0]?.backend.path, '/v2/reports/{city}');
  });
  it('joins the path of the probe likewise; without one the backend is not probed', () => {
    const probed = load({ 'backend.baseUrl': 'http://localhost:3000/v2/', 'backend.probe': { path: '/alive?deep=1' } });
    assert.equal(probed.backend.probePath, '/v2/alive?deep=1');
    assert.equal(load({}).backend.probePath, undefined);
  });
  it('lowers header names, and lets a resource override the backend', () => {
    const config = load({
      'backend.headers': { 'X-Key': 'all', 'X-Other': 'o' },
      'resources.report.backend.headers': { 'x-KEY': 'one' },
    });
    assert.deepEqual(config.resources[0]?.backend.headers, { 'x-key': 'one', 'x-other': 'o' });
  });
  it('orders both operator tokens, drops empty and equal ones', () => {
    const tokens = (adminToken: string, adminTokenNext: string) =>
      load({ 'server.adminToken': adminToken, 'server.adminTokenNext': adminTokenNext }).server.adminTokens;
    assert.deepEqual(tokens('now', 'next'), ['now', 'next']);
    assert.deepEqual(tokens('', 'next'), ['next']);
    assert.deepEqual(tokens('same', 'same'), ['same']);
  });
  const NOW = 'operator-token-of-now';
  const ROTATIONS: readonly (readonly [string, string, string, RegExp | undefined])[] = [
    ['two tokens', NOW, 'operator-token-of-next', undefined],
    ['an empty next one', NOW, '', undefined],
    ['no token at all', '', '', undefined],
    [
      'the next one alone, which works',
      '',
      NOW,
      /^server\.adminTokenNext: is the only .* works .* server\.adminToken is /,
    ],
    ['the same one twice', NOW, NOW, /^server\.adminTokenNext: the same token as server\.adminToken/],
  ];
  for (const [title, now, next, expected] of ROTATIONS)
    it(`${expected === undefined ? 'does not warn' : 'warns'} of ${title} where a rotation has two`, () => {
      const config = load({ 'server.adminToken': now, 'server.adminTokenNext': next });
      const [warning, ...others] = configWarnings(config);
      assert.deepEqual(others, []);
      if (expected === undefined) assert.equal(warning, undefined);
      else assert.match(warning ?? '', expected);
      assert.ok(!warning?.includes(NOW));
    });
  it('warns of the next token alone when the first one is not there at all', () =>
    assert.equal(configWarnings(load({ 'server.adminTokenNext': NOW })).length, 1));
  it('writes addresses in their checksum form and URLs without trailing slash', () => {
    const config = load({
      'payments.x402.payTo': '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
      'merchant.publicBaseUrl': 'https://a.example/shop/',
    });
    assert.equal(config.x402?.payTo, '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913');
    assert.equal(config.merchant.publicBaseUrl, 'https://a.example/shop');
  });
  for (const [path, notation] of [
    ['/reports/:city', ':city'],
    ['/:city/reports', ':city'],
    ['/reports/*', 'a *'],
    ['/reports/*city', 'a *'],
  ] as const)
    it(`warns of ${path}, which is no template`, () => {
      const [warning] = configWarnings(load({ 'resources.report.backend.path': path }));
      assert.match(warning ?? '', /^resources\.report\.backend\.path: has .*, which is ordinary text here/);
      assert.ok(warning?.includes(notation));
    });
  for (const [title, bindings, unsent] of [
    ['no list names', { query: ['q'] }, 'n'],
    ['no list names beside a whole body', { body: 'q' }, 'n'],
    ['empty bindings send', {}, 'q, n'],
    ['the bindings all send', { query: ['q'], body: ['n'] }, undefined],
  ] as const)
    it(`warns of the input that ${title}`, () => {
      const properties = { city: { type: 'string' }, q: { type: 'string' }, n: { type: 'string' } };
      const inputSchema = { type: 'object', properties, required: ['city'] };
      const backend = { method: 'POST', path: '/r/{city}', inputBindings: bindings };
      const config = load({ 'resources.report.inputSchema': inputSchema, 'resources.report.backend': backend });
      const found = configWarnings(config);
      if (unsent === undefined) assert.deepEqual(found, []);
      else
        assert.match(
          found.join(),
          new RegExp(`^resources\\.report\\.backend\\.inputBindings: sends ${unsent} nowhere`),
        );
    });
  it('warns of a short operator token without showing it', () => {
    assert.equal(configWarnings(load({ 'server.adminToken': 'x'.repeat(16) })).length, 0);
    const mcp = { 'protocols.mcp.enabled': true };
    assert.match(configWarnings(load(mcp))[0] ?? '', /^protocols\.mcp: enabled, but no resource/);
    assert.deepEqual(configWarnings(load({ ...mcp, 'resources.report.expose': ['http', 'mcp'] })), []);
    const [warning] = configWarnings(load({ 'server.adminToken': 'fifteen-letters' }));
    assert.match(warning ?? '', /shorter than 16/);
    assert.doesNotMatch(warning ?? '', /fifteen/);
  });
});

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

/** A configuration in a folder of its own that names this database. */
async function configured(path: string) {
  const folder = await temporaryDirectory(ends, 'acg-relative-');
  const file = join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify(changed({ storage: { sqlite: { path } } })));
  const load = (named: string = file) => loadConfig({ path: named, env: {} }).storage.engine;
  return { folder, file, load };
}

describe('the path of the database', () => {
  it('is relative to the folder of the configuration file, whatever folder that is', async () => {
    const { folder, load } = await configured('./data/gateway.db');
    assert.deepEqual(load(), { kind: 'sqlite', path: join(folder, 'data/gateway.db') });
  });

  it('is the same for a file that is named by a relative path', async () => {
    const { folder, file, load } = await configured('gateway.db');
    assert.deepEqual(load(relative(process.cwd(), file)), { kind: 'sqlite', path: join(folder, 'gateway.db') });
  });

  for (const path of ['/var/lib/gateway.db', ':memory:'])
    it(`stays ${path}`, async () => {
      const { load } = await configured(path);
      assert.deepEqual(load(), { kind: 'sqlite', path });
    });
});
