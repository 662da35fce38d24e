import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { readUniqueJson } from '../../../src/config/document/json.ts';

describe('a document that is plain JSON', () => {
  it('is read as the YAML parser reads it', () => {
    const document = fc.dictionary(fc.string({ unit: 'binary', maxLength: 8 }), fc.jsonValue({ maxDepth: 3 }));
    fc.assert(
      fc.property(document, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        assert.deepEqual(readUniqueJson(text), parse(text, { version: '1.2', schema: 'core', stringKeys: true }));
      }),
      { numRuns: 60 },
    );
  });

  const OTHERS: Readonly<Record<string, string>> = {
    'YAML in braces': '{ a: 1 }',
    'a comment behind it': '{"a":1} # one',
    'a list': '[{"a":1}]',
    'a name twice': '{"a":1,"a":2}',
    'a name twice further down, once with an escape': '{"a":{"b":1,"\\u0062":2}}',
    'a name twice in a list': '{"a":[1,{"b":{},"c":"\\"}:","b":{}}]}',
    'an unfinished text': '{"a":"',
  };
  for (const [title, text] of Object.entries(OTHERS))
    it(`is not ${title}: that is left to the YAML parser`, () => assert.equal(readUniqueJson(text), undefined));

  it('may have texts that look like names, and the same name in two objects', () => {
    const document = { a: { x: '"b":', y: ['a":', 'a', ': '] }, b: { x: '\\":', a: 'a' } };
    assert.deepEqual(readUniqueJson(`\n ${JSON.stringify(document)}\n`), document);
  });
});
