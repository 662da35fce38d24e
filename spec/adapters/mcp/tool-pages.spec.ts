import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toolPages } from '../../../src/adapters/mcp/adapter.ts';
import type { ListedResource } from '../../../src/resources/listing.ts';

const SERVER = { name: 'shop', title: 'Shop', version: '1.0.0' };

interface Page {
  readonly tools: readonly { readonly name: string }[];
  readonly nextCursor?: string;
}

function resources(count: number, description = 'One of many'): readonly ListedResource[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `tool-${index}`,
    name: `Tool ${index}`,
    description,
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    method: 'POST',
    pricing: { type: 'free' },
    exposedVia: ['mcp'],
    paymentMethods: [],
  }));
}

function pagesOf(listed: readonly ListedResource[]): readonly Page[] {
  const pages = toolPages(listed, SERVER).modern;
  const found: Page[] = [];
  let cursor: string | undefined;
  do {
    const page: Page = JSON.parse(pages.at(cursor)?.toString() ?? '') as Page;
    found.push(page);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

describe('the pages of tools/list', () => {
  it('are one without a cursor for an ordinary merchant, also for one without tools', () => {
    for (const count of [0, 1, 500]) {
      const [only, ...more] = pagesOf(resources(count));
      assert.deepEqual([only?.tools.length, only?.nextCursor, more.length], [count, undefined, 0]);
    }
  });

  it('have every tool once, in the order of the configuration', () => {
    const pages = pagesOf(resources(1_201));
    assert.deepEqual(
      pages.map(({ tools }) => tools.length),
      [500, 500, 201],
    );
    assert.deepEqual(
      pages.flatMap(({ tools }) => tools.map(({ name }) => name)),
      resources(1_201).map(({ id }) => id),
    );
  });

  it('have fewer tools where these are long, and at least one', () => {
    const long = pagesOf(resources(60, 'x'.repeat(20_000)));
    assert.ok(long.length > 1 && long.every(({ tools }) => tools.length <= 27), `${long.length}`);
    assert.equal(pagesOf(resources(3, 'x'.repeat(600_000))).length, 3);
  });

  it('have cursors that every process with the same tools understands, and none with others', () => {
    const listed = resources(501);
    const [first] = pagesOf(listed);
    const cursor = first?.nextCursor;
    assert.ok(toolPages(listed, SERVER).legacy.at(cursor) !== undefined);
    assert.equal(toolPages(listed.slice(1), SERVER).modern.at(cursor), undefined);
    const wrong = ['', 'x', '0', '1', '500', cursor?.replace(/^500/, '0'), cursor?.replace(/^500/, '1'), 500, null, {}];
    for (const other of wrong) assert.equal(toolPages(listed, SERVER).modern.at(other ?? null), undefined, `${other}`);
  });
});
