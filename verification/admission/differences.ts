/** Compares two objects member by member. */

import { isDeepStrictEqual } from 'node:util';

const MAX_SHOWN = 120;

/** What differs, one line for each member: its path, what was expected, what came. */
export function differences(expected: unknown, actual: unknown, path = ''): readonly string[] {
  if (isDeepStrictEqual(expected, actual)) return [];
  if (!hasMembers(expected) || !hasMembers(actual) || Array.isArray(expected) !== Array.isArray(actual))
    return [`${path || 'object'}: expected ${shown(expected)}, came ${shown(actual)}`];
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].flatMap((name) =>
    differences(expected[name], actual[name], path === '' ? name : `${path}.${name}`),
  );
}

function hasMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN - 1)}…`;
}
