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
import { type Changes, changed, load, MAINNET, PAYEE, problems, SETTLED_AFTER } from './document/document.ts';
import { at, file, folder } from './files.ts';

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

const X = 'payments.x402';
const R = 'resources.report';

describe('what start-up accepts', () => {
  const ACCEPTED: readonly (readonly [string, Changes])[] = [
    ['the smallest paid configuration', {}],
    ['a complete mainnet configuration', MAINNET],
    ['a price with spare zeros', { [`${R}.pricing.amount`]: '0.010000000' }],
    ['a payee in lower case', { [`${X}.payTo`]: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' }],
    ['the declared currency', { [`${X}.currency`]: 'usd', [`${R}.pricing.currency`]: 'usd' }],
    [
      'a backend outside the pod when allowed',
      { 'backend.baseUrl': 'http://10.0.0.1', 'backend.allowNonLoopback': true },
    ],
    ['the other loopback spellings', { 'backend.baseUrl': 'http://[::1]:3000/base/' }],
    ...['localhost:3000', '127.255.255.254', '2130706433', '0x7f.1', 'LOCALHOST.', '[0:0:0:0:0:0:0:1]'].map(
      (host) => [`the backend at ${host}`, { 'backend.baseUrl': `http://${host}` }] as const,
    ),
    ['redis with replicas', { storage: { redis: { url: 'redis://x' }, replicas: 3 } }],
    ['a free gateway without payments', { payments: undefined, [`${R}.pricing`]: { type: 'free' } }],
    ['a newline in a description', { [`${R}.description`]: 'two\nlines\n' }],
    ['disabled adapters beside one that is enabled', { [`${R}.expose`]: ['mcp', 'http', 'a2a'] }],
  ];
  for (const [title, changes] of ACCEPTED) it(title, () => assert.deepEqual(problems(changes), []));
});

describe('limits.rate', () => {
  it('the rate limit is off, and 100 a second with a burst of two seconds when it is switched on', () => {
    for (const [rate, expected] of [
      [undefined, undefined],
      [{}, { perSecond: 100, burst: 200 }],
      [{ by: 'ip' }, { perSecond: 100, burst: 200 }],
      [{ perSecond: 5 }, { perSecond: 5, burst: 10 }],
      [{ burst: 7 }, { perSecond: 100, burst: 7 }],
      [
        { perSecond: 5, burst: 1, by: 'ip' },
        { perSecond: 5, burst: 1 },
      ],
    ] as const)
      assert.deepEqual(load({ 'limits.rate': rate }).limits.rate, expected);
    for (const rate of [{ by: 'token' }, { perMinute: 1 }])
      assert.equal(problems({ 'limits.rate': rate }).length, 1, JSON.stringify(rate));
  });
  it('a rate limit that is no mapping is refused with how to switch it on and off', () => {
    for (const rate of [true, false, null, 5]) {
      const [problem, ...others] = problems({ 'limits.rate': rate });
      assert.match(
        problem?.message ?? '',
        /^must be a mapping .*; \{\} switches it on, leave it out for off(?:; it has no value)?$/,
      );
      assert.deepEqual(others, []);
    }
  });
});

describe('an adapter that is not enabled', () => {
  it('is no adapter of a resource', () =>
    assert.deepEqual(load({ [`${R}.expose`]: ['a2a', 'http'] }).resources[0]?.exposedVia, ['http']));
});

const plain: Changes = { [`${R}.backend.path`]: '/reports' };
const posting = (more: Changes = {}): Changes => ({ ...plain, [`${R}.backend.method`]: 'POST', ...more });

describe('what start-up accepts of a resource that is settled after the call', () => {
  const fine: readonly (readonly [string, Changes])[] = [
    ['a GET', {}],
    ['a PUT', { ...plain, [`${R}.backend.method`]: 'PUT' }],
    ['a DELETE', { ...plain, [`${R}.backend.method`]: 'DELETE' }],
    ['a POST that may be repeated', posting({ [`${R}.backend.idempotent`]: true })],
    ['a POST that does no harm unpaid', posting({ [`${R}.backend.safeUnpaid`]: true })],
    ['the shortest window', { [`${X}.maxTimeoutSeconds`]: 90 }],
    ['a POST whose money moves first', posting({ [`${R}.pricing.settle`]: 'before', 'storage.sealing': undefined })],
  ];
  for (const [what, changes] of fine) it(what, () => assert.deepEqual(problems({ ...SETTLED_AFTER, ...changes }), []));

  it('and before is what is left out', () => {
    const pricingOf = (changes: Changes) => load(changes).resources[0]?.pricing;
    assert.deepEqual(pricingOf({ [`${R}.pricing.settle`]: 'before' }), pricingOf({}));
    assert.partialDeepStrictEqual(pricingOf(SETTLED_AFTER), { settle: 'after' });
  });
});

describe('placeholders', () => {
  const name = (value: string, env: Readonly<Record<string, string>> = {}) =>
    load({ 'merchant.name': value }, env).merchant.name;
  const secret = file('secret', 's3cret\r\n');
  const ROWS: readonly (readonly [string, string, Readonly<Record<string, string>>, string])[] = [
    ['a variable', at('SHOP'), { SHOP: 'Bakery' }, 'Bakery'],
    ['a variable inside a text', `The ${at('A')} of ${at('B')}.`, { A: 'House', B: 'Tea' }, 'The House of Tea.'],
    ['a default when unset', at('SHOP:-Corner shop'), {}, 'Corner shop'],
    ['a default when empty', at('SHOP:-Corner'), { SHOP: '' }, 'Corner'],
    ['a variable rather than its default', at('SHOP:-Corner'), { SHOP: 'Mine' }, 'Mine'],
    ['a mounted file without its newline', at(`file:${secret}`), {}, 's3cret'],
    ['a variable through its _FILE twin', at('SHOP'), { SHOP_FILE: secret }, 's3cret'],
    ['a value that looks like a placeholder, once', at('SHOP'), { SHOP: at('OTHER') }, at('OTHER')],
    ['a lone dollar as it stands', 'cheap $ {x}', {}, 'cheap $ {x}'],
  ];
  for (const [title, value, env, expected] of ROWS) it(`read ${title}`, () => assert.equal(name(value, env), expected));

  const REFUSED: readonly (readonly [string, string, RegExp])[] = [
    ['nested', `\${A:-${at('B')}}`, /placeholder inside a placeholder/],
    ['open', `\${A`, /without closing brace/],
    ['nameless', at(''), /malformed placeholder/],
    ['with an illegal name', at('A-B'), /malformed placeholder/],
  ];
  for (const [title, value, message] of REFUSED)
    it(`are refused when ${title}`, () => {
      const [problem] = problems({ 'merchant.name': value });
      assert.equal(problem?.path, 'merchant.name');
      assert.match(problem.message, message);
    });
  it('stay as they are in keys', () =>
    assert.equal(problems({ 'merchant.x': 1, [`merchant.${at('A')}`]: 1 }, { A: 'name' }).length, 2));
});

describe('a placeholder that is the whole value', () => {
  const mounted = file('port', '8500\n');
  it('is a number where the schema wants one, and a boolean likewise', () => {
    const config = load(
      {
        'server.port': at('PORT'),
        'management.port': at(`file:${mounted}`),
        'server.trustProxy': at('PROXIES:-2'),
        'protocols.mcp': { enabled: at('MCP') },
        'resources.report.backend.timeoutMs': at('TIMEOUT'),
      },
      { PORT: '8402', MCP: 'true', TIMEOUT: '5' },
    );
    assert.deepEqual(
      [config.server.port, config.management.port, config.server.trustProxy, config.protocols.mcp.enabled],
      [8402, 8500, 2, true],
    );
    assert.equal(config.resources[0]?.backend.timeoutMs, 5);
  });

  it('is the number of the version, which is a constant', () =>
    assert.deepEqual(problems({ version: at('VERSION') }, { VERSION: '1' }), []));

  it('is a number in a list and in a mapping of names', () => {
    const changes = {
      'resources.report.pricing': { type: 'free' },
      'resources.report.backend.relayStatuses': [at('STATUS')],
      'authorization.ap2': { enabled: false, currencies: { EUR: at('DIGITS') } },
    };
    assert.deepEqual(problems(changes, { STATUS: '404', DIGITS: '2' }), []);
  });

  it('stays a text where the schema wants one', () => {
    const { x402 } = load({ 'payments.x402.assetVersion': at('TWO') }, { TWO: '2' });
    assert.equal(x402?.assetVersion, '2');
    assert.equal(load({ 'merchant.name': at('NAME') }, { NAME: 'true' }).merchant.name, 'true');
  });

  it('stays a text where the operator writes a schema of his own', () => {
    const [problem] = problems({ 'resources.report.inputSchema.maxProperties': at('MOST') }, { MOST: '3' });
    assert.equal(problem?.path, 'resources.report.inputSchema.maxProperties');
  });

  const NONE = ['', ' 1', '1 ', '1.0', '1e3', '0x1', '+1', '01', '9007199254740993', 'one', 'true'];
  for (const text of NONE)
    it(`is refused as a number: ${JSON.stringify(text)}`, () =>
      assert.deepEqual(problems({ 'server.port': at('PORT') }, { PORT: text }), [
        {
          path: 'server.port',
          message:
            'must be a port from 0 (any free one) to 65535: a whole number such as 8402 and nothing else, which the environment variable PORT is not',
        },
      ]));

  for (const text of ['', 'yes', 'True', '1', 'true '])
    it(`is refused as a boolean: ${JSON.stringify(text)}`, () => {
      const [problem] = problems({ 'protocols.mcp': { enabled: at('MCP') } }, { MCP: text });
      assert.equal(
        problem?.message,
        'must be true or false and nothing else, which the environment variable MCP is not',
      );
    });

  it('is refused by its bounds with the name of the variable', () => {
    const [problem] = problems({ 'server.trustProxy': at('PROXIES') }, { PROXIES: '9' });
    assert.match(problem?.message ?? '', /\(0 to 8\); the value comes from the environment variable PROXIES$/);
  });

  it('of which more is written is a text, and no number', () => {
    const [problem] = problems({ 'server.port': `${at('A')}${at('B')}` }, { A: '84', B: '02' });
    assert.match(problem?.message ?? '', /whole number without quotes; the value comes from .* A and .* B$/);
  });
});

describe('the environment', () => {
  it('overrides the document, placeholders of unset variables included', () => {
    const env = {
      ADMIN_TOKEN: 'admin-from-env',
      MERCHANT_BASE_URL: 'http://127.0.0.1:9999',
      REDIS_URL: 'redis://store.example:6379',
    };
    const config = load({ 'server.adminToken': at('ADMIN_SECRET_NAME_NOT_SET') }, env);
    assert.deepEqual(config.server.adminTokens, ['admin-from-env']);
    assert.equal(config.backend.origin, 'http://127.0.0.1:9999');
    assert.deepEqual(config.storage.engine, { kind: 'redis', url: 'redis://store.example:6379', replicas: 0 });
  });
  it('reads each of them from a file as well', () => {
    const config = load({}, { ADMIN_TOKEN_FILE: file('token', 'from-file\n') });
    assert.deepEqual(config.server.adminTokens, ['from-file']);
  });
  it('counts an empty variable as unset', () =>
    assert.deepEqual(load({ 'server.adminToken': 'kept' }, { ADMIN_TOKEN: '' }).server.adminTokens, ['kept']));
  it('is never expanded', () => assert.deepEqual(load({}, { ADMIN_TOKEN: at('X') }).server.adminTokens, [at('X')]));
  it('proves that a mainnet key came out of a file', () => {
    const key = file('relayer', `0x${'7'.repeat(64)}\n`);
    const local = (privateKey: string) => ({ ...MAINNET, 'payments.x402.facilitator': { mode: 'local', privateKey } });
    assert.deepEqual(problems(local(at(`file:${key}`))), []);
    assert.deepEqual(problems(local(at('RELAYER')), { RELAYER_FILE: key }), []);
    assert.equal(problems(local(at('RELAYER')), { RELAYER: `0x${'7'.repeat(64)}` }).length, 1);
  });
});
