import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { ConfigError } from '../../src/problems/problem.ts';
import { load, placedProblems } from './document/document.ts';
import { at, file } from './files.ts';

interface Node {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
  readonly items?: Node;
}

const DEFINED = schema.$defs as unknown as Readonly<Record<string, Node>>;

/** A value at every key that holds no others. */
function filled(node: Node, value: unknown): unknown {
  if (node.$ref !== undefined) return filled(DEFINED[node.$ref.replace('#/$defs/', '')] ?? {}, value);
  const { properties, additionalProperties: open, items } = node;
  if (items !== undefined) return [filled(items, value)];
  const named = { ...(typeof open === 'object' ? { 'x-key': open } : {}), ...properties };
  if (Object.keys(named).length === 0) return value;
  return Object.fromEntries(Object.entries(named).map(([key, inner]) => [key, filled(inner, value)]));
}

const SECRET = 'Kx7vTq9LmW';
const PIECES = Array.from({ length: SECRET.length - 4 }, (_, at) => SECRET.slice(at, at + 5));
const NUMBERS = [73_173, 7_317_317_317];

function reportOf(text: string): string {
  return new ConfigError(placedProblems(text)).message;
}

function shows(report: string): boolean {
  return [...PIECES, ...NUMBERS.map(String)].some((piece) => report.includes(piece));
}

const DOCUMENT = filled(schema as unknown as Node, SECRET);

describe('what is said of a configuration', () => {
  const SPELLINGS: Readonly<Record<string, (document: unknown) => string>> = {
    'YAML in blocks': (document) => stringify(document),
    'YAML in quotes': (document) => stringify(document, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' }),
    'YAML in braces': (document) => stringify(document, { collectionStyle: 'flow' }),
    'JSON in lines': (document) => JSON.stringify(document, null, 2),
    'JSON in one line': (document) => JSON.stringify(document),
  };

  for (const [title, spell] of Object.entries(SPELLINGS)) {
    it(`shows no secret: ${title}`, () => {
      const report = reportOf(spell(DOCUMENT));
      assert.ok(report.split('\n').length > 60, report);
      assert.ok(!shows(report), report);
    });

    for (const number of NUMBERS)
      it(`shows no secret that is a number of ${String(number).length} digits: ${title}`, () => {
        const report = reportOf(spell(filled(schema as unknown as Node, number)));
        assert.ok(!shows(report), report);
      });

    it(`shows no part of a secret where a character is wrong: ${title}`, () => {
      const text = spell(DOCUMENT);
      const slips = ['', ...'"\': \n\t{}[],#*&@|%', ': ', ', ', '- '];
      fc.assert(
        fc.property(fc.nat(text.length - 1), fc.constantFrom(...slips), fc.boolean(), (at, slip, replaces) => {
          const report = reportOf(text.slice(0, at) + slip + text.slice(replaces ? at + 1 : at));
          assert.ok(!shows(report), report);
        }),
        { numRuns: Number(process.env['RUNS'] ?? 100) },
      );
    });
  }

  it('shows nothing of a value that the environment or a file has', () => {
    const mounted = file('secret', `${SECRET} \u0001\n`);
    const text = `server: { adminToken: "${at('TOKEN')}", adminTokenNext: "${at(`file:${mounted}`)}", port: "${at(`PORT:-${SECRET}`)}" }`;
    const report = new ConfigError(placedProblems(text, { TOKEN: `${SECRET} ` })).message;
    for (const key of ['adminToken', 'adminTokenNext', 'port']) assert.match(report, new RegExp(`server\\.${key}: `));
    assert.ok(!shows(report), report);
  });

  const SLIPS: Readonly<Record<string, string>> = {
    'a token behind a colon without a space': `server: { adminToken:${SECRET} }`,
    'a token behind a space instead of a colon': `server: { adminToken ${SECRET} }`,
    'a token behind an equals sign': `server: { adminToken=${SECRET} }`,
    'a token as a key': `server: { adminToken, ${SECRET} }`,
    'tokens in braces instead of brackets': `protocols: { acp: { auth: { clients: [{ id: a, tokens: { ${SECRET} } }] } } }`,
    'a brace that does not close': `server: {adminToken: ${SECRET}`,
    'a tab before a key': `\t${SECRET}: 1`,
    'a token through an alias': `a: &x ${SECRET}\nb: *x`,
    'a header as one text': `backend: { headers: { "Authorization: Bearer ${SECRET}" } }`,
    'a private key as payee': `payments: { x402: { payTo: "0x${SECRET}" } }`,
    'a token twice': `server:\n  adminToken: ${SECRET}\n  adminToken: ${SECRET}\n`,
    'a token with a tag': `server:\n  adminToken: !token ${SECRET}\n`,
    'a token as an alias': `server:\n  adminToken: *${SECRET}\n`,
    'a token as an anchor': `server:\n  port: &${SECRET} a\n`,
    'a token in a tag': `server:\n  adminToken: !${SECRET} a\n`,
    'a key of a wrong curve in many lines': `protocols:\n  a2a:\n    signingKey: |\n      ${SECRET}\n      port: ${SECRET}\n`,
    'a text in quotes that swallows the next line': `server:\n  adminToken: "${SECRET}\n  host: "${SECRET}: x"\n`,
  };
  for (const [title, text] of Object.entries(SLIPS))
    it(`shows nothing of ${title}`, () => {
      const report = reportOf(text);
      assert.match(report, /line \d+, column \d+/);
      assert.ok(!shows(report), report);
    });
});

describe('the configured secrets', () => {
  it('are the tokens, keys, passwords and the parts of URLs in which providers put keys', () => {
    const secrets = load({
      'server.adminToken': 'operator-token-1',
      'server.adminTokenNext': 'operator-token-2',
      'backend.headers': { 'x-api-key': 'merchant-api-key' },
      storage: { redis: { url: 'redis://user:redis-pass%21word@redis.example:6379' } },
      'payments.x402.rpcUrl': 'https://rpc.example/v3/0123456789abcdef0123?apikey=query-api-key',
      'payments.x402.rpcUrls': ['https://rpc2.example/v3/second-node-key-0001'],
      'payments.x402.facilitator.auth': { type: 'bearer', token: 'facilitator-token' },
    }).secrets;
    for (const secret of [
      'operator-token-1',
      'operator-token-2',
      'merchant-api-key',
      'redis-pass%21word',
      'redis-pass!word',
      '0123456789abcdef0123',
      'query-api-key',
      'second-node-key-0001',
      'facilitator-token',
    ])
      assert.ok(secrets.includes(secret), secret);
    assert.ok(!secrets.some((secret) => secret.length < 8 || secret.includes('example')));
  });

  it('a password for Redis and one for its sentinels count too', () => {
    const nodes = ['sentinel-1:26379'];
    const sentinel = { name: 'shop', nodes, username: 'watcher', password: 'sentinel-password' };
    const secrets = load({ storage: { redis: { sentinel, username: 'shop', password: 'redis-password' } } }).secrets;
    assert.ok(secrets.includes('sentinel-password') && secrets.includes('redis-password'));
  });

  it('the secret of an API key counts line by line, not its id', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const keySecret = String(privateKey.export({ type: 'sec1', format: 'pem' }));
    const auth = { type: 'cdp', keyId: 'organizations/shop/apiKeys/one', keySecret };
    const secrets = load({ 'payments.x402.facilitator.auth': auth }).secrets;
    const [, ...lines] = keySecret.trim().split('\n').slice(0, -1);
    for (const line of lines.filter(({ length }) => length >= 8)) assert.ok(secrets.includes(line), line);
    assert.ok(!secrets.includes(auth.keyId) && !secrets.some((secret) => secret.startsWith('-----')));
  });

  it('a relayer key counts with and without its 0x', () => {
    const key = `0x${'7'.repeat(64)}`;
    const secrets = load({
      'payments.x402.facilitator': { mode: 'local', privateKey: key },
      'payments.x402.rpcUrl': 'http://rpc.example',
    }).secrets;
    assert.ok(secrets.includes(key) && secrets.includes(key.slice(2)));
  });
});
