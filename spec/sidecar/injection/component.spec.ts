import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { ManifestError, readManifests, writeYaml } from '../../../src/sidecar/injection/component.ts';

describe('the text of manifests', () => {
  it('means what kubectl reads in it', () => {
    const [document] = readManifests(
      'a: [0444, 0o444, 1_000, 0b11, 08, 0x1F, 1e3, yes, on, y, No, 12:30:45, ~, TRUE, 1.0]\nb: &b {c: 1}\nd: {<<: *b, e: 2}\n',
    );
    assert.deepEqual(document?.object, {
      // The first list is what kubectl 1.32 made of the same text.
      a: [292, 292, 1000, 3, 8, 31, 1000, 'yes', 'on', 'y', 'No', '12:30:45', null, true, 1],
      b: { c: 1 },
      d: { c: 1, e: 2 },
    });
  });

  it('keeps documents that nothing changes, with their comments', () => {
    const texts = ['# first\na: 1 # one\n', 'b:   "two"\n'];
    const documents = readManifests(texts.join('---\n'));
    assert.deepEqual(
      documents.map(({ object, write }) => write(object)),
      ['# first\na: 1 # one\n', 'b: "two"\n'],
    );
  });

  it('reads every document of a stream and skips empty ones', () => {
    assert.deepEqual(
      readManifests('---\n---\na: 1\n---\n# nothing\n---\nb: 2\n').map(({ object }) => object),
      [{ a: 1 }, { b: 2 }],
    );
    assert.deepEqual(readManifests(''), []);
  });

  it('answers JSON in JSON', () => {
    const [document] = readManifests(' {"a": [1]}');
    assert.equal(document?.write({ a: [1, 2] }), '{\n  "a": [\n    1,\n    2\n  ]\n}\n');
  });

  it('reads a mapping in braces as YAML when it is no JSON', () => {
    assert.deepEqual(readManifests('{a: 1}')[0]?.object, { a: 1 });
  });

  it('says in which document the mistake is', () => {
    assert.throws(() => readManifests('a: 1\n---\nb: [\n'), /document 2: /u);
    assert.throws(() => readManifests('a: 1\na: 2\n'), ManifestError);
    assert.throws(() => readManifests('a: *nowhere\n'), ManifestError);
  });

  it('writes any value so that readers of both YAML versions read the same', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(
        'yes',
        'No',
        '0444',
        '0o17',
        '12:30',
        '1_000',
        '2026-11-23',
        '~',
        '=',
        '<<',
        'null',
        '-',
        '.5',
        '#',
        'a: b',
      ),
      fc.string({ unit: fc.constantFrom(' ', '\n', '\t', 'a') }),
      fc.string({ unit: fc.constantFrom('$', '"', "'", '\\', '\n', ' ', ':', '-', '#', '{', '%', '@') }),
    );
    const values = fc.letrec((tie) => ({
      any: fc.oneof(texts, fc.integer(), fc.boolean(), fc.constant(null), tie('list'), tie('mapping')),
      list: fc.array(tie('any'), { maxLength: 3 }),
      mapping: fc.dictionary(texts, tie('any'), { maxKeys: 3, noNullPrototype: true }),
    })).mapping;
    fc.assert(
      fc.property(values, (value) => {
        const text = writeYaml(value);
        assert.deepEqual(parse(text), value);
        assert.deepEqual(parse(text, { version: '1.1' }), value);
        assert.deepEqual(readManifests(text)[0]?.object, value);
      }),
      { numRuns: 500 },
    );
  });
});
