import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { build } from 'rolldown';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import { BUILDS, DOCUMENT_NAMES, type DocumentName, type Fault } from '../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../src/adapters/acp/validation/validator.ts';
import type { Json } from '../../src/json/types.ts';
import { readCorpus } from '../../tools/vectors/acp.ts';
import { CORPUS_FILE, unless } from '../adapters/acp/validation/published.ts';
import { VECTORS } from '../adapters/acp/validation/vectors/documents.ts';

const ENTRY = join(import.meta.dirname, 'fixtures/validators/entry.ts');
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

interface Labelled {
  readonly name: DocumentName;
  readonly body: Json;
}

function ownVectors(): readonly Labelled[] {
  return DOCUMENT_NAMES.flatMap((name) => {
    const { least, full, valid, invalid } = VECTORS[name];
    return [least, full, ...valid, ...invalid].map((body) => ({ name, body }));
  });
}

function corpus(): readonly Labelled[] {
  return readCorpus(CORPUS_FILE).map(({ schema, body }) => ({ name: schema, body }));
}

function fromSource(documents: readonly Labelled[]): readonly (readonly (Fault | null)[])[] {
  return documents.map(({ name, body }) => BUILDS.map((one) => validatorOf(one, name)(body) ?? null));
}

describe('the validators in the bundle', () => {
  const work = mkdtempSync(join(tmpdir(), 'validators-'));
  const bundle = join(work, BUNDLE_NAME);
  before(() => build({ ...bundleOptions(ENTRY, work), logLevel: 'silent' }));
  after(() => rmSync(work, { recursive: true, force: true }));

  const fromBundle = (documents: readonly Labelled[]): unknown => {
    const file = join(work, 'documents.json');
    writeFileSync(file, JSON.stringify(documents));
    const args = ['--disallow-code-generation-from-strings', bundle, file];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES });
    assert.equal(stderr, '');
    return JSON.parse(stdout);
  };

  it('bring neither the compiler nor the schemas along', () => {
    const code = readFileSync(bundle, 'utf8');
    assert.doesNotMatch(code, /ajv\/dist\/(core|2020|compile)/);
    assert.doesNotMatch(code, /"title": "ACP 2026-04-17/);
  });

  it('say of every own vector what the source says, in every build, and compile nothing for it', () => {
    const documents = ownVectors();
    assert.deepEqual(fromBundle(documents), fromSource(documents));
  });

  it('say of every labelled document what the source says', {
    skip: unless(CORPUS_FILE, 'the bundle was NOT held against the labelled documents'),
  }, () => {
    const documents = corpus();
    assert.deepEqual(fromBundle(documents), fromSource(documents));
  });
});
