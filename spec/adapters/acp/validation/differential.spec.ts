import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { differential } from './differential.ts';
import { OFFICIAL_SCHEMA_FILE, readOfficial, unless } from './published.ts';

const DOCUMENTS = 2000;

describe('documents made at random from the official schema and then changed', () => {
  const skip = unless(OFFICIAL_SCHEMA_FILE, 'the schemas were NOT held against the official one');
  it('get the same verdict from our schemas and the official one', { skip }, () => {
    const { documents, valid, disagreements } = differential(readOfficial(), 417, DOCUMENTS);
    assert.deepEqual(disagreements, []);
    assert.equal(documents, DOCUMENTS);
    assert.ok(valid > DOCUMENTS / 5 && valid < (DOCUMENTS * 4) / 5, `${valid} valid ones show little`);
  });

  it('show a difference from another schema, in the smallest document that shows it', { skip }, () => {
    const official = readOfficial();
    const other = {
      ...official,
      accepts: (name: Parameters<typeof official.accepts>[0], document: Parameters<typeof official.accepts>[1]) =>
        official.accepts(name, document) && !JSON.stringify(document).includes('"biometric"'),
    };
    const {
      disagreements: [first],
    } = differential(other, 417, DOCUMENTS);
    assert.equal(first?.official, false);
    assert.match(JSON.stringify(first?.document), /"biometric"/);
  });
});
