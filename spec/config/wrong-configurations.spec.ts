import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError, problemLine } from '../../src/problems/problem.ts';
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
