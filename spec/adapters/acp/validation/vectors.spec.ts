import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BUILDS, DOCUMENT_NAMES } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import { OFFICIAL_SCHEMA_FILE, readOfficial, unless } from './published.ts';
import { VECTORS } from './vectors/documents.ts';

describe('the own vectors', () => {
  for (const name of DOCUMENT_NAMES) {
    const { least, full, valid, invalid } = VECTORS[name];

    it(`of ${name} that are right are taken by every build`, () => {
      for (const build of BUILDS)
        for (const document of [least, full, ...valid])
          assert.equal(validatorOf(build, name)(document), undefined, JSON.stringify(document));
    });

    it(`of ${name} that break a rule are refused`, () => {
      for (const document of invalid)
        assert.notEqual(validatorOf('strict', name)(document), undefined, JSON.stringify(document));
    });
  }

  it('get the same verdict from the official schema', {
    skip: unless(OFFICIAL_SCHEMA_FILE, 'the own vectors were NOT held against the official schema'),
  }, () => {
    const official = readOfficial();
    for (const name of DOCUMENT_NAMES) {
      const { least, full, valid, invalid } = VECTORS[name];
      for (const document of [least, full, ...valid])
        assert.ok(official.accepts(name, document), `${name} ${JSON.stringify(document)}`);
      for (const document of invalid)
        assert.equal(official.accepts(name, document), false, `${name} ${JSON.stringify(document)}`);
    }
  });
});
