import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError, problemLine } from '../../src/problems/problem.ts';
import { blocksOf } from '../documents/blocks.ts';
import { changed, placedProblems } from './document/document.ts';
import { file } from './files.ts';
import { FORMS, type Mistake } from './mistakes.ts';

/** What is said of a file, without its name. */
function said(text: string, env: Mistake['env'] = {}): readonly string[] {
  const path = file('config.yaml', text);
  try {
    loadConfig({ path, env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => problemLine(problem).replace(`${path}:`, ''));
  }
  return [];
}

function made(text: string, { title, from, pattern, to }: Mistake): string {
  const changed = text.replace(pattern === undefined ? String(from) : new RegExp(pattern), () => to);
  assert.notEqual(changed, text, title);
  return changed;
}

for (const [form, { text, mistakes }] of Object.entries(FORMS))
  describe(`a wrong configuration in its ${form} form`, () => {
    it('is right before the mistake is made', () => assert.deepEqual(said(text), []));

    for (const mistake of mistakes)
      it(`is told its line, path and remedy: ${mistake.title}`, () =>
        assert.deepEqual(said(made(text, mistake), mistake.env), mistake.said));
  });

describe('a wrong configuration', () => {
  const { text, mistakes } = FORMS.long;

  it('is one of at least sixty', () => assert.ok(mistakes.length >= 60));

  it('with twenty mistakes is told all twenty in one pass', () => {
    const chosen = mistakes.filter(({ together }) => together);
    assert.equal(chosen.length, 20);
    const env: Mistake['env'] = Object.assign({}, ...chosen.map((mistake) => mistake.env));
    const lineOf = (line: string): number => Number.parseInt(line, 10);
    const expected = chosen.flatMap((mistake) => mistake.said).toSorted((one, other) => lineOf(one) - lineOf(other));
    assert.deepEqual(said(chosen.reduce(made, text), env), expected);
  });
});

const HEAD = 'version: 1\nmerchant: { id: a, name: A, publicBaseUrl: "https://a.example" }\n';
const TAIL =
  'backend: { baseUrl: "http://127.0.0.1:3000" }\nstorage: { sqlite: { path: ":memory:" } }\nresources:\n  a: { name: A, backend: { method: GET, path: /a }, pricing: { type: free } }\n';

describe('the place of a problem', () => {
  const linesOf = (text: string) => placedProblems(text).map(problemLine);

  it('is its own of several in one line', () => {
    assert.deepEqual(linesOf(`${HEAD}server: { port: 99999, trustProxy: 9 }\n${TAIL}`), [
      'line 3, column 11 server.port: must be a port from 0 (any free one) to 65535 (0 to 65535)',
      'line 3, column 24 server.trustProxy: must be the number of proxies in front whose X-Forwarded-For is believed (0 to 8)',
    ]);
  });

  it('is the begin of a text that has no mapping', () => {
    for (const text of ['- 1', ''])
      assert.deepEqual(linesOf(text), ['line 1, column 1 document: must be a mapping of keys to values']);
  });

  it('is the member that is nested too deeply', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(80)}1${'}'.repeat(80)}`) as unknown;
    const [line, ...more] = linesOf(JSON.stringify(changed({ 'resources.report.inputSchema': deep })));
    assert.match(
      line ?? '',
      /^line 1, column \d+ resources\.report\.inputSchema\.a.* must not be nested deeper than 64 levels$/,
    );
    assert.deepEqual(more, []);
  });

  it('is told as docs/configuration.md shows', () => {
    const shown = blocksOf('docs/configuration.md').find(({ detail }) => detail === 'spec/config/mistakes.spec.ts');
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
        assert.equal(error.message.replaceAll(path, 'config.yaml').trimEnd(), shown?.text.trimEnd());
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

  it('is found in JSON of one line', () => {
    const resource = { name: 'R', backend: { method: 'GET', path: '/r' }, pricing: { type: 'free' } };
    const resources = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`r${at}`, resource]));
    const text = JSON.stringify(changed({ resources: { ...resources, r150: { ...resource, name: '' } } }));
    const [line] = linesOf(text);
    assert.match(line ?? '', new RegExp(`line 1, column ${text.indexOf('"name":""') + 1} resources\\.r150\\.name: `));
  });
});
