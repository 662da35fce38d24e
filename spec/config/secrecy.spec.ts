import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { ConfigError } from '../../src/problems/problem.ts';
import { placedProblems } from './document/document.ts';

interface Node {
  readonly writeOnly?: boolean;
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
  readonly items?: Node;
}

const DEFINED = schema.$defs as unknown as Readonly<Record<string, Node>>;

/** A value at every key that holds a secret, and nothing at the others. */
function secretsIn(node: Node, secret: unknown): unknown {
  if (node.$ref !== undefined) return secretsIn(DEFINED[node.$ref.replace('#/$defs/', '')] ?? {}, secret);
  if (node.writeOnly === true) return secret;
  const { properties = {}, additionalProperties, items } = node;
  if (items !== undefined) return listOf(secretsIn(items, secret));
  const open = typeof additionalProperties === 'object' ? { 'x-key': additionalProperties } : {};
  const found = Object.entries({ ...open, ...properties })
    .map(([key, inner]) => [key, secretsIn(inner, secret)] as const)
    .filter(([, value]) => value !== undefined);
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

function listOf(item: unknown): unknown {
  return item === undefined ? undefined : [item];
}

/** Every path at which the document above has a value. */
function pathsIn(value: unknown, path = ''): readonly string[] {
  if (value === null || typeof value !== 'object') return [path];
  return Object.entries(value).flatMap(([key, inner]) => pathsIn(inner, path === '' ? key : `${path}.${key}`));
}

const SECRET = 'Kx7vTq9LmW';
const PIECES = Array.from({ length: SECRET.length - 4 }, (_, at) => SECRET.slice(at, at + 5));
const NUMBERS = [73_173, 7_317_317_317];

function reportOf(text: string): string {
  return new ConfigError(placedProblems(text)).report;
}

function shows(report: string): boolean {
  return [...PIECES, ...NUMBERS.map(String)].some((piece) => report.includes(piece));
}

const DOCUMENT = secretsIn(schema as unknown as Node, SECRET);

describe('the keys that the schema calls secret', () => {
  it('are those that hold tokens, keys, passwords, headers and URLs with credentials', () => {
    assert.deepEqual(pathsIn(DOCUMENT), [
      'server.adminToken',
      'server.adminTokenNext',
      'backend.headers.x-key',
      'storage.redis.url',
      'storage.redis.sentinel.password',
      'storage.redis.password',
      'storage.sealing.keys.0.key',
      'protocols.a2a.signingKey',
      'protocols.acp.auth.token',
      'protocols.acp.auth.clients.0.tokens.0',
      'protocols.acp.backend.headers.x-key',
      'protocols.acp.idempotency.secret',
      'payments.x402.rpcUrl',
      'payments.x402.rpcUrls.0',
      'payments.x402.buyerTokenSecrets.0',
      'payments.x402.facilitator.auth.token',
      'payments.x402.facilitator.auth.keySecret',
      'payments.x402.facilitator.fallbacks.0.auth.token',
      'payments.x402.facilitator.fallbacks.0.auth.keySecret',
      'payments.x402.facilitator.privateKey',
      'authorization.ap2.checkout.signingKey',
      'signing.key',
      'resources.x-key.backend.headers.x-key',
    ]);
  });
});

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
        const report = reportOf(spell(secretsIn(schema as unknown as Node, number)));
        assert.ok(!shows(report), report);
      });

    it(`shows no part of a secret where a character is wrong: ${title}`, () => {
      const text = spell(DOCUMENT);
      const slips = [
        '',
        '"',
        "'",
        ':',
        ': ',
        ' ',
        '\n',
        '\t',
        '{',
        '}',
        '[',
        ']',
        ',',
        ', ',
        '- ',
        '#',
        '*',
        '&',
        '@',
        '|',
        '%',
      ];
      fc.assert(
        fc.property(fc.nat(text.length - 1), fc.constantFrom(...slips), fc.boolean(), (at, slip, replaces) => {
          const report = reportOf(text.slice(0, at) + slip + text.slice(replaces ? at + 1 : at));
          assert.ok(!shows(report), report);
        }),
        { numRuns: Number(process.env['RUNS'] ?? 100) },
      );
    });
  }

  it('shows a placeholder, and nothing of its default', () => {
    const report = reportOf(`server: { adminToken: "\${TOKEN:-${SECRET} }", port: "\${PORT:-${SECRET}}" }`);
    assert.ok(report.includes(`adminToken: "\${TOKEN:-…}", port: "\${PORT:-…}"`), report);
    assert.ok(!shows(report), report);
  });

  it('shows nothing of a comment', () => {
    const report = reportOf(`server:\n  port: x # ${SECRET}, ${SECRET}: ${SECRET}\n`);
    assert.ok(!shows(report), report);
  });

  const SLIPS: Readonly<Record<string, string>> = {
    'a token behind a colon without a space': `server: { adminToken:${SECRET} }`,
    'a token behind a space instead of a colon': `server: { adminToken ${SECRET} }`,
    'a token behind an equals sign': `server: { adminToken=${SECRET} }`,
    'a token as a key': `server: { adminToken, ${SECRET} }`,
    'tokens in braces instead of brackets': `protocols: { acp: { auth: { clients: [{ id: a, tokens: { ${SECRET} } }] } } }`,
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
      assert.ok(report.includes(' | '), report);
      assert.ok(!shows(report), report);
    });
});
