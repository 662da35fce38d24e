import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseConfig } from '../../src/config/load.ts';
import { ConfigError, problemLine } from '../../src/problems/problem.ts';
import { changed, placedProblems, problems } from './document/document.ts';
import { at, file } from './files.ts';

describe('the text of the document', () => {
  const ROWS: readonly (readonly [string, string, RegExp])[] = [
    ['an alias', 'a: &x 1\nb: *x', /^line 2, column 4 b: is an alias \(\*name\)/m],
    ['a cycle of aliases', 'a: &x [*x]', /^line 1, column 8 a\[0\]: is an alias/m],
    [
      'a bomb of aliases',
      `a: &a [1]\n${'bcdefgh'.replace(/./g, (c) => `${c}: &${c} [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n`)}`,
      /^line 2, column 8 b\[0\]: is an alias/m,
    ],
    ['a list', '- 1', /^line 1, column 1 document: must be a mapping/],
    ['nothing', '', /^line 1, column 1 document: must be a mapping/],
    ['a depth that would exhaust the stack', '['.repeat(100_000), /^line 1, .* document: is nested too deeply/],
  ];
  for (const [title, text, line] of ROWS)
    it(`refuses ${title}`, () => assert.match(placedProblems(text).map(problemLine).join('\n'), line));
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
      const found = placedProblems(text, { FROM_ENV: `${canary} ` });
      assert.ok(found.length > 0);
      assert.doesNotMatch(new ConfigError(found).report, new RegExp(canary));
    }
    assert.ok(placedProblems(texts[3] ?? '', { FROM_ENV: `${canary} ` }).length >= 12);
  });
});
