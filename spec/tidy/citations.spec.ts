import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { brokenLinks } from '../documents/links.ts';
import { pages } from './sources.ts';

/** What comments cite, and where its headings are. */
const CITED: Readonly<Record<string, string>> = {
  contract: 'docs/contract.md',
  specification: 'docs/specification.md',
  a2a: 'docs/protocols/a2a.md',
  acp: 'docs/protocols/acp.md',
  ap2: 'docs/protocols/ap2.md',
  mcp: 'docs/protocols/mcp.md',
  x402: 'docs/protocols/x402.md',
};
const CITATION = new RegExp(
  `\\b(${Object.keys(CITED).join('|')}) (\\d+(?:\\.\\d+)?(?:(?:, | and | to )\\d+(?:\\.\\d+)?)*)`,
  'g',
);
/** A comment goes on over the ends of its lines. */
const LINE_OF_COMMENT = /\n\s*(?:\*|\/\/|#|--) ?/g;

describe('the citations', () => {
  const headings = new Map(
    Object.entries(CITED).map(([name, file]) => {
      const found = [...readFileSync(file, 'utf8').matchAll(/^#+ (\d+(?:\.\d+)?)\.? /gm)];
      return [name, new Set(found.map(([, number]) => number))] as const;
    }),
  );

  it('name headings of documents of this repository', () => {
    const lost: string[] = [];
    let seen = 0;
    for (const file of pages)
      for (const [citation, name = '', numbers = ''] of readFileSync(file, 'utf8')
        .replace(LINE_OF_COMMENT, ' ')
        .matchAll(CITATION))
        for (const number of numbers.match(/\d+(?:\.\d+)?/g) ?? []) {
          seen += 1;
          if (headings.get(name)?.has(number) !== true) lost.push(`${file}: ${citation}`);
        }
    assert.deepEqual(lost, []);
    assert.ok(seen > 300, `${seen} citations`);
  });

  it('name no document that stands elsewhere', () => {
    const elsewhere =
      /\b(?:CONTRACT|SPEC|DESIGN|HOUSE)\b(?:\.md)? (?:part )?\d|reference\/[a-z0-9-]+\.md|\b(?:security|corrections|style)\.md\b/;
    assert.deepEqual(
      pages.filter((file) => file !== 'spec/tidy/citations.spec.ts' && elsewhere.test(readFileSync(file, 'utf8'))),
      [],
    );
  });

  it('of documents link to files and headings that are there', () => {
    assert.deepEqual(brokenLinks(pages.filter((file) => file.endsWith('.md'))), []);
  });
});
