import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { attackName, FIGURES, GOALS, INCIDENTS, ROWS } from './catalogue.ts';
import { ELSEWHERE } from './elsewhere.ts';

/** The rows of a call of `attack`, as they are written out in it. */
const CALL = /\battack\(\s*('[A-Z]\d+'|\[[^\]]*\])/g;
const sources = globSync('verification/attack/**/*.spec.ts').map((file) => readFileSync(file, 'utf8'));
const covered = new Set([
  ...sources.flatMap((source) =>
    [...source.matchAll(CALL)].flatMap(([, rows = '']) => [...rows.matchAll(/'([A-Z]\d+)'/g)].map(([, id]) => id)),
  ),
  ...Object.values(ELSEWHERE).flatMap((proofs) => proofs.flatMap(([rows]) => rows.split(' '))),
]);
const rows = Object.entries(ROWS);

describe('the catalogue of attacks', () => {
  for (const [id, attack] of rows)
    it(`${id}, ${attack}, has a named test`, () => assert.ok(covered.has(id), `no attack(['${id}'…`));

  it('has every row of its sections, without a gap', () => {
    const last = { H: 8, B: 12, P: 8, X: 21, A: 8, O: 11, D: 8, I: 14 };
    const expected = Object.entries(last).flatMap(([letter, count]) =>
      Array.from({ length: count }, (_, at) => `${letter}${at + 1}`),
    );
    assert.deepEqual(Object.keys(ROWS).sort(), expected.sort());
  });

  it('has no test of a row that it does not know', () => {
    const known = new Set(rows.map(([id]) => id));
    assert.deepEqual(
      [...covered].filter((id) => id === undefined || !known.has(id)),
      [],
    );
  });

  it('has incidents that consist of its rows only', () => {
    for (const parts of Object.values(INCIDENTS)) for (const id of parts) assert.ok(id in ROWS, id);
  });

  it('measures every figure in some test', () => {
    const named = [...sources, ...globSync('verification/attack/**/*.ts').map((file) => readFileSync(file, 'utf8'))];
    const goals = new Set(GOALS.flatMap(({ figures }) => figures));
    for (const figure of Object.keys(FIGURES)) {
      assert.ok(goals.has(figure as keyof typeof FIGURES), `${figure} belongs to no goal`);
      assert.ok(
        named.some((source) => /measured\(/.test(source) && source.includes(`'${figure}'`)),
        `no test measures ${figure}`,
      );
    }
  });

  it('reads its rows back from the names of tests', () => {
    assert.deepEqual(attackName('H1 B5: a name: with a colon'), { rows: ['H1', 'B5'], name: 'a name: with a colon' });
    assert.equal(attackName('the house has files'), undefined);
  });

  for (const [file, proofs] of Object.entries(ELSEWHERE))
    it(`has a spec that proves its rows: ${file}`, () => {
      const source = readFileSync(file, 'utf8');
      for (const [, title] of proofs) {
        const spelled = [`'${title.replaceAll("'", "\\'")}'`, `"${title}"`, `\`${title}\``];
        assert.ok(
          spelled.some((spelling) => source.includes(spelling)),
          `no test named ${title}`,
        );
      }
    });
});
