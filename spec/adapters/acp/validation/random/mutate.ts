import { isObject, type Json, type JsonObject } from '../../../../../src/json/types.ts';
import type { Chance } from '../../../../../verification/chaos/sim/chance.ts';

/** Where a value stands in a document. */
export type Path = readonly (string | number)[];

export interface Vocabulary {
  readonly names: readonly string[];
  readonly words: readonly string[];
}

const VALUES: readonly Json[] = [
  ...[null, true, false, 0, -1, 1, 1.5, 100, 101, 1e21, '', 'x', 'xx', 'xxx', [], {}, [null], [[]], ['a', 'a']],
  ...['x'.repeat(12), 'x'.repeat(36), 'x'.repeat(41), 'x'.repeat(501), 'x'.repeat(5001), '🎉'.repeat(2)],
  ...['2026-04-17', '2026-04-17T10:00:00Z', '2026-02-30T10:00:00Z', '2026-04-17T25:00:00Z', 'usd', 'USD', '$.a'],
  ...['https://shop.example', '/relative', 'a@shop.example', 'a@b', 'com.example', 'Discount', 'discount'],
  ...[{ type: 'x' }, { token: 'x' }, { version: '2026-04-17' }, [{ name: 'discount' }], ['x', { name: 'x' }]],
];

/** Changes one value of a document in one way; the result may be valid or not. */
export function mutated(document: Json, chance: Chance, { names, words }: Vocabulary): Json {
  const paths = pathsOf(document);
  const path = chance.pick(paths);
  const value = valueAt(document, path);
  const replace = (): Json =>
    chance.happens(0.3)
      ? chance.pick(words)
      : chance.happens(0.2)
        ? valueAt(document, chance.pick(paths))
        : chance.pick(VALUES);
  const changes: (() => Json | undefined)[] = [replace, replace, () => undefined];
  if (isObject(value)) {
    const add = (name: string, added: Json): Json => ({ ...value, [name]: added });
    changes.push(
      () => add(chance.pick(names), replace()),
      () => add('zz_unknown', replace()),
    );
    changes.push(() => add(chance.pick(names), valueAt(document, chance.pick(paths))));
  }
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    changes.push(
      () => [...items, replace()],
      () => [...items, ...items],
      () => [],
    );
  }
  return withValue(document, path, chance.pick(changes)());
}

/** The path of every value of a document, the document itself first. */
export function pathsOf(document: Json, path: Path = []): readonly Path[] {
  if (Array.isArray(document))
    return [path, ...(document as readonly Json[]).flatMap((one, index) => pathsOf(one, [...path, index]))];
  if (!isObject(document)) return [path];
  return [path, ...Object.entries(document).flatMap(([name, one]) => pathsOf(one, [...path, name]))];
}

export function valueAt(document: Json, path: Path): Json {
  return path.reduce<Json>((value, step) => (value as { readonly [step: string]: Json })[step] ?? null, document);
}

/**
 * The document with another value at one path; undefined removes it, but for the document itself,
 * which becomes null.
 */
export function withValue(document: Json, path: Path, value: Json | undefined): Json {
  const [step, ...rest] = path;
  if (step === undefined) return value ?? null;
  if (Array.isArray(document)) {
    const items = document as readonly Json[];
    if (rest.length === 0 && value === undefined) return items.filter((_, index) => index !== step);
    return items.map((one, index) => (index === step ? withValue(one, rest, value) : one));
  }
  const members = Object.entries(document as JsonObject);
  if (rest.length === 0 && value === undefined) return Object.fromEntries(members.filter(([name]) => name !== step));
  return Object.fromEntries(members.map(([name, one]) => [name, name === step ? withValue(one, rest, value) : one]));
}

/** The smallest document that still shows it: members and items are removed while one can be. */
export function shrunk(document: Json, shows: (document: Json) => boolean): Json {
  for (const path of pathsOf(document)) {
    if (path.length === 0) continue;
    const smaller = withValue(document, path, undefined);
    if (shows(smaller)) return shrunk(smaller, shows);
  }
  for (const path of pathsOf(document)) {
    const value = valueAt(document, path);
    if (typeof value !== 'string' || value.length < 2) continue;
    const shorter = withValue(document, path, value.slice(0, value.length >> 1));
    if (shows(shorter)) return shrunk(shorter, shows);
  }
  return document;
}
