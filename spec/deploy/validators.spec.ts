import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { build } from 'rolldown';
import { parse } from 'yaml';
import { BUNDLE_NAME, bundleOptions } from '../../deploy/bundle/options.ts';
import {
  BUILDS,
  DOCUMENT_NAMES,
  type DocumentName,
  type Fault,
  validatorOf,
} from '../../src/adapters/acp/validation/validator.ts';
import { matchesSchema } from '../../src/config/compiled.ts';
import type { Json } from '../../src/json/json.ts';
import { matchesMetaSchema } from '../../src/resources/schemas/compiled.ts';
import { KEYWORDS } from '../../src/resources/schemas/keywords.ts';
import { readCorpus } from '../../tools/vectors/acp.ts';
import { CORPUS_FILE, unless } from '../adapters/acp/validation/published.ts';
import { VECTORS } from '../adapters/acp/validation/vectors.ts';
import { codeBeside } from '../support/bundle.ts';

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Bundles a program of fixtures/validators. Its specs also check that it carries no compiler. */
function bundledValidators(program: 'entry' | 'config' | 'meta-schema') {
  const work = mkdtempSync(join(tmpdir(), 'validators-'));
  const bundle = join(work, BUNDLE_NAME);
  const entry = join(import.meta.dirname, `fixtures/validators/${program}.ts`);
  before(() => build({ ...bundleOptions(entry, work), logLevel: 'silent' }));
  after(() => rmSync(work, { recursive: true, force: true }));
  const code = (): string => codeBeside(bundle);
  it('carries no compiler', () => assert.doesNotMatch(code(), /ajv\/dist\/(core|2020|compile)/));
  return {
    code,
    /** What it answers to these documents, with code generation switched off. */
    verdicts(documents: readonly unknown[]): unknown {
      const file = join(work, 'documents.json');
      writeFileSync(file, JSON.stringify(documents));
      const args = ['--disallow-code-generation-from-strings', bundle, file];
      const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES });
      assert.equal(stderr, '');
      return JSON.parse(stdout);
    },
  };
}

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
  const { code, verdicts } = bundledValidators('entry');

  it('carry no schemas', () => assert.doesNotMatch(code(), /"title": "ACP 2026-04-17/));

  it('judge every vector as the source does, in every build', () => {
    const documents = ownVectors();
    assert.deepEqual(verdicts(documents), fromSource(documents));
  });

  it('judge every labelled document as the source does', {
    skip: unless(CORPUS_FILE, 'the bundle was NOT held against the labelled documents'),
  }, () => {
    const documents = corpus();
    assert.deepEqual(verdicts(documents), fromSource(documents));
  });
});

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

/** A value of each kind that keywords take, or none takes. */
const VALUES = [
  null,
  true,
  -1,
  0.5,
  3,
  '',
  'object',
  '^[a-z]+$',
  '(',
  'urn:example:a',
  'not a uri %',
  [],
  ['a', 'a'],
  ['a', 'b'],
  [{ type: 'string' }, 7],
  {},
  { type: 'number' },
  { a: { type: 'nothing' } },
  { a: ['b', 'b'] },
  { '(': { type: 'string' } },
];

describe('the meta-schema in the bundle', () => {
  const { verdicts } = bundledValidators('meta-schema');

  it('judges every keyword with every kind of value as the source does', () => {
    const keywords = [...KEYWORDS.keys(), '$id', '$dynamicRef', 'unknown'];
    const documents = [true, 7, ...keywords.flatMap((keyword) => VALUES.map((value) => ({ [keyword]: value })))];
    const fromSource = documents.map((one) => (matchesMetaSchema(one) ? [] : matchesMetaSchema.errors));
    assert.ok(fromSource.filter((errors) => errors?.length !== 0).length > 300);
    assert.ok(fromSource.filter((errors) => errors?.length === 0).length > 200);
    assert.deepEqual(verdicts(documents), JSON.parse(JSON.stringify(fromSource)));
  });
});
