import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load, MAINNET, problems } from './document/document.ts';
import { at, file } from './files.ts';

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
