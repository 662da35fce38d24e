import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { blocksOf, DOCUMENTS } from './blocks.ts';

/** The languages that a spec of this folder runs. */
const RUN_HERE = ['sh', 'yaml', 'text', 'ts', 'json', 'py'];
/** The languages that `validated.spec.ts` knows. */
const VALIDATED_HERE = ['sh', 'yaml', 'json'];
const LEAST_RUN = 0.8;

const blocks = DOCUMENTS.flatMap(blocksOf);

describe('the tags of code blocks', () => {
  it('name a spec that reads the document, where another one runs the block', () => {
    const elsewhere = blocks.filter(({ detail }) => detail?.startsWith('spec/'));
    assert.ok(elsewhere.length > 0);
    for (const { document, line, detail = '' } of elsewhere)
      assert.ok(existsSync(detail) && readFileSync(detail, 'utf8').includes(document), `${document}:${line}`);
  });

  it('promise no run and no validation that does not happen', () => {
    const others = blocks.filter(
      ({ kind, language, detail }) =>
        (kind === 'run' && !detail?.startsWith('spec/') && !RUN_HERE.includes(language)) ||
        (kind === 'validated' && !VALIDATED_HERE.includes(language)),
    );
    assert.deepEqual(others, []);
  });

  it('are run for at least four of five blocks that are no figure', (t) => {
    const count = (kind: string): number => blocks.filter((block) => block.kind === kind).length;
    const figures = blocks.filter(({ detail }) => detail === 'a figure').length;
    const [run, validated, all] = [count('run'), count('validated'), blocks.length];
    const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(0)} %`;
    t.diagnostic(
      `${all} blocks: ${run} run, ${validated} validated, ${count('illustrative')} illustrative, of which ${figures} are figures; ` +
        `run: ${percent(run, all)}, ${percent(run, all - figures)} without figures; ` +
        `run or validated: ${percent(run + validated, all)}, ${percent(run + validated, all - figures)} without figures`,
    );
    assert.ok(run >= LEAST_RUN * (all - figures), `${run} of ${all - figures}`);
  });
});
