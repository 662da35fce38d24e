import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { applied, mutantsOf } from './mutants/sites.ts';
import { tried } from './mutants/trial.ts';

const FILE = 'src/mandates/ap2/chain.ts';
const SPECS = ['spec/mandates/ap2/verify.spec.ts'];

const TIMEOUT_MS = 60_000;

/**
 * The whole run takes many minutes (`make mutants`); here only its ability to find a mutant is
 * tested.
 */
describe('the mutants of the verifier', () => {
  it('each remove one check', () => {
    const source =
      "if (a === 1 || b > 2) throw new Refused('x');\ncheck(c);\nexport const d = (e: number) => (e < 1 ? f : g);\n";
    const made = mutantsOf('f.ts', source).map((one) => applied(source, one).split('\n').join(' ').trim());
    assert.equal(new Set(made).size, made.length);
    const rest = 'check(c); export const d = (e: number) => (e < 1 ? f : g);';
    assert.ok(made.includes(`if (false) throw new Refused('x'); ${rest}`));
    assert.ok(made.includes(`if ((a === 1)) throw new Refused('x'); ${rest}`));
    assert.ok(made.includes(`if ((b > 2)) throw new Refused('x'); ${rest}`));
    assert.ok(made.includes(`if (a === 1 || (b >= 2)) throw new Refused('x'); ${rest}`));
    assert.ok(
      made.some((one) => one.includes("throw new Refused('x'); ; export")),
      'a call is left out',
    );
    assert.ok(made.some((one) => one.includes('=> ((f))')) && made.some((one) => one.includes('=> ((g))')));
  });

  it('keep their names when lines before them change', () => {
    const source = 'if (a) throw b;\nif (a) throw b;\n';
    const [first, second] = mutantsOf('f.ts', source).map(({ name }) => name);
    assert.notEqual(first, second);
    assert.equal(mutantsOf('f.ts', `// later\n${source}`)[0]?.name, first);
  });

  it('are loaded, make a test fail, and do not change the file', async () => {
    const source = readFileSync(FILE, 'utf8');
    const mutant = mutantsOf(FILE, source).find(({ was }) => was.includes('sdHash'));
    assert.ok(mutant);
    const turned = { ...mutant, replacement: 'true' };
    assert.equal(await tried(turned, SPECS, TIMEOUT_MS), 'killed');
    assert.equal(await tried({ ...mutant, replacement: mutant.was }, SPECS, TIMEOUT_MS), 'survived');
    assert.equal(readFileSync(FILE, 'utf8'), source);
  });
});
