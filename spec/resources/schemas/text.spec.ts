import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { textFault } from '../../../src/resources/schemas/schema-check.ts';

describe('published text', () => {
  const control = ['\u0000', '\u001b[31m', '\u007f', '\u0085'];
  const hidden = ['\u202a', '\u202e', '\u2066', '\u2069', '\u200e', '\u200b', '\ufeff', '\u{e0041}', '\ud800'];
  for (const bad of [...control, ...hidden])
    it(`refuses ${JSON.stringify(bad)}`, () => assert.notEqual(textFault(`a${bad}b`), undefined));
  for (const good of ['', 'Straße, 東京, العربية', 'two\nlines\tand a tab', '👩‍👩‍👧', 'e\u0301'])
    it(`accepts ${JSON.stringify(good)}`, () => assert.equal(textFault(good), undefined));
});
