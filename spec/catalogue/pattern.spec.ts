import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { patternFault } from '../../src/catalogue/pattern.ts';
import { textFault } from '../../src/catalogue/text.ts';

describe('patterns', () => {
  const SLOW = [
    '(?=a)',
    '(?!a)',
    '(?<=a)b',
    '(?<!a)b',
    '(a)\\1',
    '(?<n>a)\\k<n>',
    '(a+)+',
    '(a*)*',
    '(?:a+b?){2,}',
    '((a+))+',
    '([a-z]+)*',
    '(x(a|b+)y)*',
  ];
  for (const pattern of SLOW)
    it(`${pattern} is slow`, () => {
      assert.match(patternFault(pattern, false) ?? '', /must not use/);
      assert.equal(patternFault(pattern, true), undefined);
    });
  const FINE = [
    '^[a-z]{1,5}$',
    '(a|b)+',
    '(?:abc)*',
    '(ab?c)+',
    '(a{3})+',
    '\\(a+\\)+',
    '[(a+)]+',
    '(a+)?',
    'a+b*c+',
    '\\d{4}-\\d{2}',
    '(?<year>\\d{4})',
    '\\\\1',
    '[\\1]',
  ];
  for (const pattern of FINE) it(`${pattern} is fine`, () => assert.equal(patternFault(pattern, false), undefined));
  for (const pattern of ['\\p{L}+', '\\P{L}', '\\u{1f600}', '[😀]'])
    it(`${pattern} means something else without Unicode mode, so it is refused`, () =>
      assert.match(patternFault(pattern, true) ?? '', /must not/));
  it('have a length', () => {
    assert.equal(patternFault('a'.repeat(1_024), false), undefined);
    assert.match(patternFault('a'.repeat(1_025), false) ?? '', /1024/);
  });
});

describe('published text', () => {
  for (const bad of [
    '\u0000',
    '\u001b[31m',
    '\u007f',
    '\u0085',
    '\u202a',
    '\u202e',
    '\u2066',
    '\u2069',
    '\u200e',
    '\u200b',
    '\ufeff',
    '\u{e0041}',
    '\ud800',
  ])
    it(`refuses ${JSON.stringify(bad)}`, () => assert.notEqual(textFault(`a${bad}b`), undefined));
  for (const good of ['', 'Straße, 東京, العربية', 'two\nlines\tand a tab', '👩‍👩‍👧', 'e\u0301'])
    it(`accepts ${JSON.stringify(good)}`, () => assert.equal(textFault(good), undefined));
});
