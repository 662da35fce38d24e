import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RELAXED } from '../../../../src/adapters/acp/validation/engine.ts';
import { BUILDS, REQUEST_NAMES } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import { readCorpus } from '../../../../tools/vectors/acp.ts';
import { CORPUS_FILE, unless } from './published.ts';

const REQUESTS: ReadonlySet<string> = new Set(REQUEST_NAMES);

describe('the labelled documents of the official schema', () => {
  const skip = unless(CORPUS_FILE, 'the labelled documents were NOT checked');
  for (const build of BUILDS)
    it(`get the labelled verdict in the build ${build}, but for what it accepts from callers`, { skip }, () => {
      const taken: ReadonlySet<string> = new Set(RELAXED[build]);
      for (const { id, schema, valid, tags, body } of readCorpus(CORPUS_FILE)) {
        const expected = valid || (REQUESTS.has(schema) && tags.some((tag) => taken.has(tag)));
        assert.equal(validatorOf(build, schema)(body) === undefined, expected, `${id} ${schema}`);
      }
    });
});
