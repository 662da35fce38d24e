import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { DOCUMENTS } from './blocks.ts';

const PICTURES = globSync('docs/pictures/*').sort();
const LARGEST_BYTES = 150_000;
const IMAGE = /!\[([^\]]+)\]\(([^)]+)\)/g;

describe('the pictures of the documents', () => {
  it('are each shown somewhere, with words for those who do not see it', () => {
    const shown = DOCUMENTS.flatMap((document) =>
      [...readFileSync(document, 'utf8').matchAll(IMAGE)].map(([, words = '', target = '']) => {
        assert.ok(words.length > 30, `${document}: ${target}`);
        return path.join(path.dirname(document), target);
      }),
    );
    assert.deepEqual([...new Set(shown)].sort(), PICTURES);
  });

  for (const picture of PICTURES)
    it(`${picture} is small, and a drawing has its text as text, in light and dark`, () => {
      assert.ok(statSync(picture).size < LARGEST_BYTES);
      if (!picture.endsWith('.svg')) return;
      const drawing = readFileSync(picture, 'utf8');
      for (const part of ['<title', '<desc', '<text', 'prefers-color-scheme: dark']) assert.ok(drawing.includes(part));
      assert.doesNotMatch(drawing, /<image|<script|href=/);
    });
});
