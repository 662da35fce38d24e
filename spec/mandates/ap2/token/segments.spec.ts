import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  MAX_DISCLOSURES,
  MAX_SEGMENT,
  MAX_SEGMENTS,
  referenceOf,
  splitPresentation,
} from '../../../../src/mandates/ap2/sd-jwt.ts';
import { chainOf, hashOf, sdJwt } from '../../../../tools/mandate/maker/tokens.ts';
import { refusalOf } from '../refusal.ts';

const refusal = (presentation: string): string => refusalOf(() => splitPresentation(presentation));
const many = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `d${n}`);

describe('a presentation splits', () => {
  it('into segments whose text has its ~ back', () =>
    assert.deepEqual(splitPresentation('a.b.c~d1~d2~~e.f.g~d3~'), [
      { text: 'a.b.c~d1~d2~', jwt: 'a.b.c', disclosures: ['d1', 'd2'] },
      { text: 'e.f.g~d3~', jwt: 'e.f.g', disclosures: ['d3'] },
    ]));
  it('where segments have no disclosures', () =>
    assert.deepEqual(splitPresentation('a.b.c~~e.f.g~'), [
      { text: 'a.b.c~', jwt: 'a.b.c', disclosures: [] },
      { text: 'e.f.g~', jwt: 'e.f.g', disclosures: [] },
    ]));
  it('back into what was joined', () => {
    for (let segments = 1; segments <= MAX_SEGMENTS; segments += 1)
      for (let disclosures = 0; disclosures < 3; disclosures += 1) {
        const texts = Array.from({ length: segments }, (_, at) => sdJwt(`a.b.${at}`, many(disclosures)));
        assert.deepEqual(
          splitPresentation(chainOf(texts)).map(({ text }) => text),
          texts,
        );
      }
  });
  it('up to its limits', () => {
    assert.equal(refusal(sdJwt('a.b.c', many(MAX_DISCLOSURES))), 'none');
    assert.equal(refusal(`${'a'.repeat(MAX_SEGMENT - 1)}~`), 'none');
  });
});

describe('a presentation is malformed', () => {
  for (const [what, text] of [
    ['that does not end in ~', 'a.b.c~d1'],
    ['that ends in a key binding token', 'a.b.c~d1~e.f.g'],
    ['with an empty disclosure at its end', 'a.b.c~d1~~'],
    ['with five segments', chainOf(many(MAX_SEGMENTS + 1).map((jwt) => `${jwt}~`))],
    ['with a disclosure too many', sdJwt('a.b.c', many(MAX_DISCLOSURES + 1))],
    ['with a disclosure too many in its first segment', chainOf([sdJwt('a.b.c', many(MAX_DISCLOSURES + 1)), 'e.f.g~'])],
    ['with a segment too long', `${'a'.repeat(MAX_SEGMENT)}~`],
    ['that is empty', ''],
  ] as const)
    it(what, () => assert.equal(refusal(text), 'mandate_malformed'));
});

describe('a receipt refers to', () => {
  const leaf = 'e.f.g~d3~';
  it('the leaf of a presentation, alone and with its disclosures', () => {
    const expected = { reference: hashOf('e.f.g'), referenceSdHash: hashOf(leaf) };
    assert.deepEqual(referenceOf(leaf), expected);
    assert.deepEqual(referenceOf(`a.b.c~d1~~${leaf}`), expected);
    assert.deepEqual(referenceOf('a.b.c~~e.f.g~'), { reference: hashOf('e.f.g'), referenceSdHash: hashOf('e.f.g~') });
  });
  it('the leaf of a chain too long to be right', () =>
    assert.equal(referenceOf(`${'x~~'.repeat(9)}${leaf}`)?.reference, hashOf('e.f.g')));
  it('nothing where there is no leaf', () => {
    for (const text of ['', '~', '~~', 'e.f.g', 'e.f~', 'e.f.g~d3', 'e.f.g.h~'])
      assert.equal(referenceOf(text), undefined);
  });
});
