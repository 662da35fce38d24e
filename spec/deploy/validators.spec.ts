import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  BUILDS,
  DOCUMENT_NAMES,
  type DocumentName,
  type Fault,
  validatorOf,
} from '../../src/adapters/acp/validation/validator.ts';
import type { Json } from '../../src/json/types.ts';
import { readCorpus } from '../../tools/vectors/acp.ts';
import { CORPUS_FILE, unless } from '../adapters/acp/validation/published.ts';
import { VECTORS } from '../adapters/acp/validation/vectors.ts';
import { bundledValidators } from './bundled-validators.ts';

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
