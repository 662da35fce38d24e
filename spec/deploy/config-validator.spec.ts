import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { build } from 'rolldown';
import { parse } from 'yaml';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import { matchesSchema } from '../../src/config/compiled.ts';

const ENTRY = join(import.meta.dirname, 'fixtures/validators/config.ts');
const SAMPLES = ['config.yaml', 'acp/config.yaml', 'mandates/config.yaml'];
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** What a member becomes; undefined: it goes. */
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
  const work = mkdtempSync(join(tmpdir(), 'config-validator-'));
  const bundle = join(work, BUNDLE_NAME);
  before(() => build({ ...bundleOptions(ENTRY, work), logLevel: 'silent' }));
  after(() => rmSync(work, { recursive: true, force: true }));

  it('comes without the compiler', () => {
    assert.doesNotMatch(readFileSync(bundle, 'utf8'), /ajv\/dist\/(core|2020|compile)/);
  });

  it('says of every sample, and of what was made wrong in it, what the source says', () => {
    const documents = SAMPLES.flatMap((name) => {
      const sample: unknown = parse(readFileSync(join(import.meta.dirname, '../../deploy/examples', name), 'utf8'));
      return [...edits(sample)].map((edit): unknown => JSON.parse(JSON.stringify(edit)));
    });
    const file = join(work, 'documents.json');
    writeFileSync(file, JSON.stringify(documents));
    const args = ['--disallow-code-generation-from-strings', bundle, file];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES });
    assert.equal(stderr, '');
    const fromSource = documents.map((one) => (matchesSchema(one) ? [] : matchesSchema.errors));
    assert.ok(fromSource.filter((errors) => errors?.length !== 0).length > 500);
    const fromBundle = JSON.parse(stdout) as readonly unknown[];
    assert.deepEqual(fromBundle, JSON.parse(JSON.stringify(fromSource)));
  });
});
