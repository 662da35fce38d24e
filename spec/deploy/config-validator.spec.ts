import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { matchesSchema } from '../../src/config/compiled.ts';
import { bundledValidators } from './bundled-validators.ts';

const EXAMPLES = join(import.meta.dirname, '../../deploy/examples');
const SAMPLES = ['config.yaml', 'acp/config.yaml', 'mandates/config.yaml'];
const PROSE = 'markdownDescription';
/** What a member becomes; undefined: it is removed. */
const WRONG = [undefined, null, 7, '', 'x', [], { x: 1 }];

/** The document, and each of its members made wrong in each of these ways. */
function* edits(document: unknown): Generator<unknown> {
  yield document;
  if (document === null || typeof document !== 'object') return;
  for (const [name, value] of Object.entries(document)) {
    const changed = (to: unknown) =>
      Array.isArray(document)
        ? document.map((item: unknown, at) => (String(at) === name ? to : item))
        : { ...document, [name]: to };
    for (const wrong of WRONG) yield changed(wrong);
    for (const edit of edits(value)) yield changed(edit);
  }
}

describe('the schema of the configuration in the bundle', () => {
  const { verdicts } = bundledValidators('config');

  it('judges every sample and each wrong edit of it as the source does', () => {
    const documents = SAMPLES.flatMap((name) => {
      const sample: unknown = parse(readFileSync(join(EXAMPLES, name), 'utf8'));
      return [...edits(sample)].map((edit): unknown => JSON.parse(JSON.stringify(edit)));
    });
    const fromSource = documents.map((one) => (matchesSchema(one) ? [] : matchesSchema.errors));
    assert.ok(fromSource.filter((errors) => errors?.length !== 0).length > 500);
    // The bundle leaves out what is for editors alone.
    const lean = JSON.parse(JSON.stringify(fromSource, (key, value) => (key === PROSE ? undefined : value)));
    assert.deepEqual(verdicts(documents), lean);
  });
});
