import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { compileCatalogue } from '../../src/catalogue/catalogue.ts';
import { configWarnings, loadConfig, parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { configPath, MAX_CONFIG_BYTES } from '../../src/config/read.ts';
import { changed, load, MAINNET, PAYEE, problems, problemsOfText } from './document.ts';

const folder = mkdtempSync(join(tmpdir(), 'acg-config-'));
after(() => rmSync(folder, { recursive: true }));
const file = (name: string, content: string | Uint8Array): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const at = (name: string): string => `\${${name}}`;
const SAMPLE = new URL('../../deploy/examples/config.yaml', import.meta.url).pathname;

describe('the sample configuration', () => {
  it('loads, compiles and says what it promises', () => {
    const config = loadConfig({ path: SAMPLE, env: { PAY_TO: PAYEE } });
    assert.equal(config.x402?.mode, 'testnet');
    assert.deepEqual([...compileCatalogue(config).byId.keys()], ['market_report', 'order_quote']);
  });
  it('does not load before the merchant says who is paid', () =>
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
    ['too large', () => file('large', ' '.repeat(MAX_CONFIG_BYTES + 1)), /larger than 1048576 bytes/],
  ];
  for (const [title, path, message] of UNREADABLE)
    it(`refuses ${title}`, () => assert.throws(() => loadConfig({ path: path(), env: {} }), message));
});

describe('what a document leaves out', () => {
  it('gets the published defaults', () => {
    const config = load({});
    assert.deepEqual(config.server, {
      host: '0.0.0.0',
      port: 8402,
      adminTokens: [],
      allowedOrigins: [],
      allowedHosts: undefined,
      trustProxy: 0,
    });
    assert.deepEqual(config.management, { host: '0.0.0.0', port: 8403 });
    assert.deepEqual(config.limits, { maxInFlight: 512, maxStreams: 32 });
    assert.deepEqual([config.storage.eventsMaxLength, config.storage.receiptsMaxLength], [10_000, 50_000]);
    assert.deepEqual(config.protocols, {
      http: { enabled: true },
      mcp: { enabled: false, mountPath: '/mcp' },
      a2a: { enabled: false, mountPath: '/a2a' },
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
  it('lowers header names, and lets a resource overrule the backend', () => {
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
  it('writes addresses in their checksum form and URLs without trailing slash', () => {
    const config = load({
      'payments.x402.payTo': '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
      'merchant.publicBaseUrl': 'https://a.example/shop/',
    });
    assert.equal(config.x402?.payTo, '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913');
    assert.equal(config.merchant.publicBaseUrl, 'https://a.example/shop');
  });
  it('warns of a short operator token without telling it', () => {
    assert.equal(configWarnings(load({ 'server.adminToken': 'x'.repeat(16) })).length, 0);
    const [warning] = configWarnings(load({ 'server.adminToken': 'fifteen-letters' }));
    assert.match(warning ?? '', /shorter than 16/);
    assert.doesNotMatch(warning ?? '', /fifteen/);
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
    ['unset', at('NOBODY_SET_THIS'), /NOBODY_SET_THIS \(or NOBODY_SET_THIS_FILE\)/],
    ['nested', `\${A:-${at('B')}}`, /placeholder inside a placeholder/],
    ['open', `\${A`, /without closing brace/],
    ['nameless', at(''), /malformed placeholder/],
    ['with an illegal name', at('A-B'), /malformed placeholder/],
    ['with a relative file', at('file:secret'), /not absolute/],
    ['with an absent file', at('file:/nonexistent/secret'), /\/nonexistent\/secret cannot be read \(ENOENT\)/],
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

describe('the environment', () => {
  it('overrides the document, placeholders that nobody set included', () => {
    const env = {
      ADMIN_TOKEN: 'admin-from-env',
      MERCHANT_BASE_URL: 'http://127.0.0.1:9999',
      REDIS_URL: 'redis://store.example:6379',
    };
    const config = load({ 'server.adminToken': at('ADMIN_SECRET_NAME_NOT_SET') }, env);
    assert.deepEqual(config.server.adminTokens, ['admin-from-env']);
    assert.equal(config.backend.origin, 'http://127.0.0.1:9999');
    assert.deepEqual(config.storage.engine, { kind: 'redis', url: 'redis://store.example:6379' });
  });
  it('reads each of them from a file as well', () => {
    const config = load({}, { ADMIN_TOKEN_FILE: file('token', 'from-file\n') });
    assert.deepEqual(config.server.adminTokens, ['from-file']);
  });
  it('does not choose between a variable and its file', () => {
    const [problem] = problems({}, { ADMIN_TOKEN: 'a', ADMIN_TOKEN_FILE: '/b' });
    assert.match(problem?.message ?? '', /ADMIN_TOKEN and ADMIN_TOKEN_FILE are both set/);
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

describe('the text of the document', () => {
  const ROWS: readonly (readonly [string, string, RegExp])[] = [
    ['a key twice', 'version: 1\nversion: 1', /line 2, column 1: the same key stands twice/],
    ['an alias', 'a: &x 1\nb: *x', /line 2, column 4: aliases/],
    ['a cycle of aliases', 'a: &x [*x]', /aliases/],
    [
      'a bomb of aliases',
      `a: &a [1]\n${'bcdefgh'.replace(/./g, (c) => `${c}: &${c} [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n`)}`,
      /aliases/,
    ],
    ['a tag', 'a: !secret b', /tags/],
    ['two documents', 'a: 1\n---\nb: 2', /only one document/],
    ['a tab', 'a:\n\tb: 1', /line 2/],
    ['a list', '- 1', /must be a mapping/],
    ['nothing', '', /must be a mapping/],
    ['a depth that would exhaust the stack', '['.repeat(100_000), /cannot be read|not well-formed/],
  ];
  for (const [title, text, message] of ROWS)
    it(`refuses ${title}`, () => {
      const [problem] = problemsOfText(text);
      assert.equal(problem?.path, 'document');
      assert.match(problem.message, message);
    });
  it('may be JSON', () => assert.equal(parseConfig(JSON.stringify(changed({}), null, 2), {}).merchant.id, 'shop'));
  it('may not be nested for ever', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(80)}1${'}'.repeat(80)}`) as unknown;
    assert.match(
      problems({ 'resources.report.inputSchema': deep })
        .map(({ message }) => message)
        .join(),
      /nested deeper than 64/,
    );
  });
});

describe('a refused configuration', () => {
  it('never tells a value: not a secret, not a line of the file', () => {
    const canary = 'c4n4ryc4n4ry';
    const secretFile = file('canary', `${canary} ${canary}\u0001\n`);
    const texts = [
      `version: 1\nserver: { adminToken: "${canary} "\n`,
      `adminToken: ${canary}\nadminToken: ${canary}`,
      `a: !${'x'} ${canary}`,
      JSON.stringify(
        changed({
          version: canary,
          'merchant.id': `${canary}!`,
          'merchant.publicBaseUrl': `https://${canary}@x/?${canary}`,
          'server.adminToken': at('FROM_ENV'),
          'server.adminTokenNext': at(`file:${secretFile}`),
          'server.port': canary,
          'backend.baseUrl': `http://${canary}.example/${canary}`,
          'backend.headers': { 'x-a': `${canary}\n` },
          storage: { redis: { url: `http://:${canary}@x` } },
          'payments.x402.network': `eip155:${canary}`,
          'payments.x402.payTo': canary,
          'payments.x402.rpcUrl': `ws://${canary}`,
          'payments.x402.facilitator': { mode: 'local', privateKey: canary },
          'resources.report.pricing.amount': canary,
          'resources.report.backend.path': `/${canary}#`,
          'resources.report.mimeType': canary,
        }),
      ),
    ];
    for (const text of texts) {
      const found = problemsOfText(text, { FROM_ENV: `${canary} ` });
      assert.ok(found.length > 0);
      assert.doesNotMatch(new ConfigError(found).message, new RegExp(canary));
    }
    assert.ok(problemsOfText(texts[3] ?? '', { FROM_ENV: `${canary} ` }).length >= 12);
  });
});
