import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InputProblem } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json/types.ts';
import { FORMATS } from '../../src/resources/patterns/formats.ts';
import { object, resourceOf } from './resources.ts';

const text = { type: 'string' };
const bytes = (value: string): Uint8Array => Buffer.from(value);
const a = (rules: object): object => object({ a: rules });
const problemsOf = (schema: object | undefined, input: unknown): readonly InputProblem[] => {
  const prepared = resourceOf(schema).prepare(input as JsonObject, undefined);
  return prepared.ok ? [] : prepared.problems;
};

describe('input is enforced before anything is paid', () => {
  const closed = 'additionalProperties';
  const list = (items: object): object => ({ type: 'array', items });
  const [one, same] = [
    { x: 1, y: 2 },
    { y: 2, x: 1 },
  ];
  const ROWS: readonly (readonly [string, object, unknown, string, string])[] = [
    ['minLength', a({ type: 'string', minLength: 2 }), { a: 'x' }, '$.a', 'minLength'],
    ['pattern', a({ type: 'string', pattern: '^x$' }), { a: 'y' }, '$.a', 'pattern'],
    ['maximum', a({ type: 'number', maximum: 2 }), { a: 3 }, '$.a', 'maximum'],
    ['format', a({ type: 'string', format: 'date' }), { a: '2026-02-30' }, '$.a', 'format'],
    ['enum', a({ enum: ['x'] }), { a: 'y' }, '$.a', 'enum'],
    ['const', a({ const: 1 }), { a: 2 }, '$.a', 'const'],
    ['type', a(text), { a: null }, '$.a', 'type'],
    ['required', object({ a: text }, { required: ['a'] }), {}, '$.a', 'required'],
    ['an inherited name', object({ toString: text }, { required: ['toString'] }), {}, '$.toString', 'required'],
    ['closed objects', a(text), { b: 1 }, '$.b', closed],
    ['closed objects deep inside', a(list(object({ b: text }))), { a: [{}, { c: 1 }] }, '$.a[1].c', closed],
    ['closed compositions', object({}, { allOf: [{ properties: { b: text } }] }), { c: 1 }, '$.c', closed],
    ['uniqueItems', a({ type: 'array', uniqueItems: true }), { a: [one, same] }, '$.a', 'uniqueItems'],
    ['an odd name', object({ 'a b': text }), { 'a b': 1 }, '$["a b"]', 'type'],
    ['a name that is a number', a(object({ 0: text })), { a: { 0: 1 } }, '$.a["0"]', 'type'],
    ['a list index', a(list(text)), { a: ['x', 1] }, '$.a[1]', 'type'],
  ];
  for (const [title, schema, input, path, keyword] of ROWS)
    it(title, () => {
      const found = problemsOf(schema, input);
      assert.ok(
        found.some((problem) => problem.path === path && problem.keyword === keyword),
        JSON.stringify(found),
      );
    });

  it('accepts {} only without a schema', () => {
    assert.deepEqual(problemsOf(undefined, {}), []);
    assert.deepEqual(problemsOf(undefined, { a: 1 }), [
      { path: '$.a', message: 'is not a property of this input', keyword: 'additionalProperties' },
    ]);
  });

  const pair = [{ type: 'number' }, text];
  for (const [title, tuple, taken, refused] of [
    ['closed', { prefixItems: pair, items: false }, [[], [1], [1, 'x']], [['x'], [1, 'x', 2], [1, 2]]],
    ['open', { prefixItems: pair }, [[], [1, 'x', {}]], [['x'], [1, 2]]],
    ['with a rest', { prefixItems: pair, items: text, minItems: 1 }, [[1], [1, 'x', 'y']], [[], [1, 'x', 2]]],
    ['closed otherwise', { prefixItems: pair, unevaluatedItems: false }, [[1, 'x']], [[1, 'x', 'y']]],
    ['of exact length', { prefixItems: pair, minItems: 2, maxItems: 2 }, [[1, 'x']], [[1], [1, 'x', 2]]],
  ] as const)
    it(`a tuple that is ${title}`, () => {
      const isTaken = (value: unknown) => problemsOf(a({ type: 'array', ...tuple }), { a: value }).length === 0;
      assert.deepEqual([taken.every(isTaken), refused.some(isTaken)], [true, false]);
    });

  it('lists every problem of a small input, and at most 20', () => {
    const schema = a(list(text));
    assert.equal(problemsOf(schema, { a: [1, 'x', 2, 3] }).length, 3);
    for (const [length, listed] of [
      [20, 20],
      [21, 20],
      [5_000, 1],
    ] as const)
      assert.equal(problemsOf(schema, { a: Array.from({ length }, () => 1) }).length, listed);
  });
  it('names no value of the input', () => {
    const canary = 'c4n4ry';
    const schema = object({
      a: { type: 'string', pattern: '^x$' },
      b: { type: 'integer' },
      c: { enum: ['x'] },
      d: { type: 'string', format: 'email' },
      e: { const: 1 },
    });
    const found = problemsOf(schema, { a: canary, b: canary, c: canary, d: canary, e: canary });
    assert.equal(found.length, 5);
    assert.doesNotMatch(JSON.stringify(found), /c4n4ry/);
  });
  it('cuts the name of an unknown property', () => {
    const [problem] = problemsOf(object({}), { ['x'.repeat(10_000)]: 1 });
    assert.equal(problem?.path, `$.${'x'.repeat(64)}`);
  });
});

describe('reserved names', () => {
  it('are stripped from the validated input and from the request', () => {
    const prepared = resourceOf(object({ a: text })).prepare(
      { a: 'x', _payment: 'proof', _authorization: {} },
      bytes('{"a":"x","_payment":"proof"}'),
    );
    assert.ok(prepared.ok);
    assert.deepEqual(prepared.input, { a: 'x' });
    assert.equal(Buffer.from(prepared.request.body ?? '').toString(), '{"a":"x"}');
  });
});

describe('hostile input costs little', () => {
  const LIMIT_MS = 100;
  const timed = (title: string, schema: object, input: unknown): Promise<void> =>
    it(title, () => {
      const resource = resourceOf(schema);
      resource.prepare({}, undefined);
      const started = process.threadCpuUsage();
      resource.prepare(input as JsonObject, undefined);
      const { user, system } = process.threadCpuUsage(started);
      const took = (user + system) / 1_000;
      assert.ok(took < LIMIT_MS, `${took} ms of CPU`);
    });
  const under = (rules: object) => a({ type: 'string', ...rules });
  timed('an exponential pattern', under({ pattern: '^(a+)+$' }), { a: `${'a'.repeat(4_000)}!` });
  timed('an alternation that overlaps', under({ pattern: '^(a|a)*$' }), { a: `${'a'.repeat(4_000)}!` });
  timed('a quadratic pattern', under({ pattern: 'a*b' }), { a: 'a'.repeat(4_096) });
  timed('a huge string under a pattern', under({ pattern: '^(a|a)*$' }), { a: 'a'.repeat(250_000) });
  timed('a list of unequal objects', a({ type: 'array', uniqueItems: true }), {
    a: Array.from({ length: 20_000 }, (_, x) => ({ x })),
  });
  timed('a list of wrong items', a({ type: 'array', items: text }), { a: Array.from({ length: 120_000 }, () => 1) });
  const unknown = Array.from({ length: 10_000 }, (_, x) => [`n${x}`, x]);
  timed('an object of unknown names', object({}), Object.fromEntries(unknown));
  for (const format of Object.keys(FORMATS))
    for (const piece of ['a', '1', 'a.', '1:', '@', '%41', '{x}', '-', '/', 'a@'])
      timed(`format ${format} on ${piece} repeated`, under({ format }), { a: piece.repeat(50_000).slice(0, 4_096) });

  for (const [title, rule] of [
    ['a pattern', { pattern: '^a*$' }],
    ['a pattern in not', { not: { pattern: 'evil' } }],
    ['a format', { format: 'uri' }],
  ] as const)
    it(`a string longer than 4,096 characters never passes ${title}`, () => {
      const [problem] = problemsOf(under(rule), { a: 'a'.repeat(4_097) });
      assert.equal(problem?.keyword, 'maxLength');
    });
  it('a string of 4,096 characters passes', () =>
    assert.deepEqual(problemsOf(under({ pattern: '^a*$' }), { a: 'a'.repeat(4_096) }), []));
});
