import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
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

  it('of documents link to files that are there', () => {
    const broken = pages
      .filter((file) => file.endsWith('.md'))
      .flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
          .map(([, target = '']) => target)
          .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(path.join(path.dirname(file), target)))
          .map((target) => `${file}: ${target}`),
      );
    assert.deepEqual(broken, []);
  });

  it('of documents link to headings that are there', () => {
    const broken = pages
      .filter((file) => file.endsWith('.md'))
      .flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)]
          .filter(([, target = '', anchor = '']) => {
            const linked = target === '' ? file : path.join(path.dirname(file), target);
            return linked.endsWith('.md') && !anchorsOf(linked).has(anchor);
          })
          .map(([link]) => `${file}: ${link}`),
      );
    assert.deepEqual(broken, []);
  });
});

/** What the headings of a document are linked by. */
function anchorsOf(file: string): ReadonlySet<string> {
  return new Set(
    [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
