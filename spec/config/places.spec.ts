import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseDocument } from 'yaml';
import { stepsTo } from '../../src/config/document/member.ts';
import { jsonTokens, type Token, yamlTokens } from '../../src/config/document/tokens.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import { blocksOf } from '../documents/blocks.ts';
import { changed, placedProblems } from './document/document.ts';
import { file } from './files.ts';

/** The report of a text, line by line, without its title. */
function reportOf(text: string, env: Readonly<Record<string, string>> = {}): readonly string[] {
  return new ConfigError(placedProblems(text, env)).report.split('\n').slice(1);
}

const HEAD = 'version: 1\nmerchant: { id: a, name: A, publicBaseUrl: "https://a.example" }\n';
const TAIL =
  'backend: { baseUrl: "http://127.0.0.1:3000" }\nstorage: { sqlite: { path: ":memory:" } }\nresources:\n  a: { name: A, backend: { method: GET, path: /a }, pricing: { type: free } }\n';

describe('the place of a problem', () => {
  it('is the key in its line, under which a caret stands', () => {
    assert.deepEqual(reportOf(`${HEAD}server:\n  port: 99999\n${TAIL}`), [
      '  line 4, column 3 server.port: must be a port from 0 (any free one) to 65535 (0 to 65535)',
      '     4 |   port: 99999',
      '       |   ^',
    ]);
  });

  it('is its own of several in one line', () => {
    const lines = reportOf(`${HEAD}server: { port: 99999, trustProxy: 9 }\n${TAIL}`);
    assert.deepEqual(
      lines.filter((line) => line.includes('|')),
      [
        '     3 | server: { port: 99999, trustProxy: 9 }',
        '       |           ^',
        '     3 | server: { port: 99999, trustProxy: 9 }',
        '       |                        ^',
      ],
    );
  });

  it('of what is missing is that of what it is missing in', () => {
    const [line] = reportOf(`version: 1\nmerchant:\n  id: a\n${TAIL}`);
    assert.match(line ?? '', /^ {2}line 2, column 1 merchant\.name: is missing/);
  });

  it('of an item of a list is the item', () => {
    const [line, excerpt, caret] = reportOf(`${HEAD}server:\n  allowedHosts:\n    - a.example\n    - "a b"\n${TAIL}`);
    assert.match(line ?? '', /^ {2}line 6, column 7 server\.allowedHosts\[1\]/);
    assert.deepEqual([excerpt, caret], ['     6 |     - "a b"', '       |       ^']);
  });

  it('is told as docs/configuration.md shows', () => {
    const shown = blocksOf('docs/configuration.md').find(({ detail }) => detail === 'spec/config/places.spec.ts');
    const payments = [
      'payments:',
      '  x402:',
      '    network: eip155:84532',
      '    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e"',
      '    assetName: USDC',
      '    assetVersion: "2"',
      '    assetDecimals: 6',
      '    facilitator: { mode: remote, url: "https://facilitator.example" }',
    ];
    const before = `${HEAD}${'# …\n'.repeat(3)}server:\n  port: "8402"\n${TAIL}${payments.join('\n')}\n`;
    const empty = '# …\n'.repeat(29 - before.split('\n').length + 1);
    const path = file('shown.yaml', `${before}${empty}    payTo: "\${PAY_TO}"\n`);
    assert.throws(
      () => loadConfig({ path, env: { PAY_TO: '0x12' } }),
      (error) => {
        assert.ok(error instanceof ConfigError);
        assert.equal(error.report.replaceAll(path, 'config.yaml').trimEnd(), shown?.text.trimEnd());
        return true;
      },
    );
  });

  it('is named by the file that was asked for', () => {
    const path = file('places.yaml', `${HEAD}server: { port: x }\n${TAIL}`);
    assert.throws(
      () => loadConfig({ path, env: {} }),
      (error) => {
        assert.ok(
          error instanceof ConfigError && error.message.includes(`  ${path}:3:11 server.port: `),
          String(error),
        );
        return true;
      },
    );
  });

  it('is none for a value of the environment that is not in the file', () => {
    const [problem] = placedProblems(HEAD + TAIL, { ADMIN_TOKEN: 'two words' });
    assert.equal(problem?.path, 'server.adminToken');
    assert.match(problem.message, /; the value comes from the environment variable ADMIN_TOKEN$/);
  });

  it('names the file that a value was mounted from', () => {
    const mounted = file('mounted-token', 'two words\n');
    const [problem] = placedProblems(`${HEAD}server: { adminToken: "\${file:${mounted}}" }\n${TAIL}`);
    assert.ok(problem?.message.endsWith(`; the value comes from the file ${mounted}`), String(problem?.message));
  });

  it('is found in JSON of one line, of which a part is shown', () => {
    const resource = { name: 'R', backend: { method: 'GET', path: '/r' }, pricing: { type: 'free' } };
    const resources = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`r${at}`, resource]));
    const text = JSON.stringify(changed({ resources: { ...resources, r150: { ...resource, name: '' } } }));
    const [line, excerpt = '', caret = ''] = reportOf(text);
    assert.match(line ?? '', new RegExp(`line 1, column ${text.indexOf('"name":""') + 1} resources\\.r150\\.name`));
    assert.ok(excerpt.length < 120, excerpt);
    assert.ok(excerpt.slice(caret.indexOf('^')).startsWith('"name":'), `${excerpt}\n${caret}`);
  });
});

describe('the tokens of a text', () => {
  const documents = fc.dictionary(fc.string({ unit: 'binary', maxLength: 8 }), fc.jsonValue({ maxDepth: 3 }));
  const texts = fc
    .tuple(documents, fc.constantFrom(undefined, 2))
    .map(([one, indent]) => String(JSON.stringify(one, null, indent)));
  const valueAt = (document: unknown, steps: readonly (string | number)[]): unknown =>
    steps.reduce<unknown>((value, step) => (value as Record<string | number, unknown>)[step], document);
  const leavesOf = (value: unknown): number =>
    value === null || typeof value !== 'object'
      ? 1
      : Object.values(value).reduce<number>((sum, one) => sum + leavesOf(one), 0);

  it('are all its values, each where it stands', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const document: unknown = JSON.parse(text);
        const scalars = [...jsonTokens(text)].filter(({ kind }) => kind === 'scalar');
        assert.equal(scalars.length, leavesOf(document));
        for (const { at, start, end } of scalars)
          assert.deepEqual(JSON.parse(text.slice(start, end)), valueAt(document, stepsTo(at)));
      }),
    );
  });

  it('are the same whether it is read as JSON or as YAML', () => {
    const told = ({ kind, at, start, end }: Token) => [kind, stepsTo(at), start, end];
    fc.assert(
      fc.property(texts, (text) => {
        const yaml = parseDocument(text, { version: '1.2', schema: 'core', stringKeys: true });
        assert.deepEqual([...yamlTokens(yaml)].map(told), [...jsonTokens(text)].map(told));
      }),
    );
  });
});
