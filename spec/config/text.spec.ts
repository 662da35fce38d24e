import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import { changed, problems, problemsOfText } from './document/document.ts';
import { at, file } from './files.ts';

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
  it('may not be nested without bound', () => {
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
  it('never shows a value: not a secret, not a line of the file', () => {
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
