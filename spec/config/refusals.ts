import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Changes, problems } from './document/document.ts';

/** A rule, and what breaks it: a value at a path, or several changes and the path that is named. */
export type Row =
  | readonly [rule: string, path: string, value: unknown, message: RegExp]
  | readonly [rule: string, changes: Changes, path: string, message: RegExp];

function read([rule, first, second, message]: Row) {
  return typeof first === 'string'
    ? { rule, changes: { [first]: second }, path: first, message }
    : { rule, changes: first, path: String(second), message };
}

/** One test for each row: this problem is named, maybe with others. */
export function refuses(rows: readonly Row[]): void {
  for (const { rule, changes, path, message } of rows.map(read))
    it(rule, () => {
      const found = problems(changes);
      const problem = found.find((candidate) => candidate.path === path);
      assert.ok(problem, `no problem at ${path}, but: ${JSON.stringify(found)}`);
      assert.match(problem.message, message);
    });
}

/** The same on top of `base`: no other problem is named, and none of these configured `values`. */
export function refusalsOf(base: (changes: Changes) => Changes, values: readonly string[]) {
  return function refusesAlone(rows: readonly Row[]): void {
    for (const { rule, changes, path, message } of rows.map(read))
      it(rule, () => {
        const found = problems(base(changes));
        const [problem, ...others] = found;
        assert.ok(problem !== undefined && others.length === 0, JSON.stringify(found));
        assert.equal(problem.path, path);
        assert.match(problem.message, message);
        for (const value of values) assert.ok(!problem.message.includes(value), 'the problem has a configured value');
      });
  };
}
