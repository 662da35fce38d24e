import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Changes, problems } from './document/document.ts';

/** A change of a shop, the one path that is named for it, and what is said. */
export type Row = readonly [title: string, changes: Changes, path: string, message: RegExp];

/**
 * For a shop: one test for each row, this problem and no other, and no value said back. `values`:
 * parts of those that are there.
 */
export function refusalsOf(shop: (changes: Changes) => Changes, values: readonly string[]) {
  return function refuses(rows: readonly Row[]): void {
    for (const [title, changes, path, message] of rows)
      it(title, () => {
        const found = problems(shop(changes));
        const [problem, ...others] = found;
        assert.ok(problem !== undefined && others.length === 0, JSON.stringify(found));
        assert.equal(problem.path, path);
        assert.match(problem.message, message);
        for (const value of values) assert.ok(!problem.message.includes(value), 'a value is never said back');
      });
  };
}
