import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InputProblem } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json/types.ts';
import { FORMATS } from './formats.ts';
import { object, resourceOf } from './resources.ts';

const text = { type: 'string' };
const bytes = (value: string): Uint8Array => Buffer.from(value);
const problemsOf = (schema: object | undefined, input: unknown): readonly InputProblem[] => {
  const prepared = resourceOf(schema).prepare(input as JsonObject, undefined);
  return prepared.ok ? [] : prepared.problems;
};

describe('input is enforced before anything is paid', () => {
  const ROWS: readonly (readonly [string, object, unknown, string, string])[] = [
    ['minLength', object({ a: { type: 'string', minLength: 2 } }), { a: 'x' }, '$.a', 'minLength'],
    ['pattern', object({ a: { type: 'string', pattern: '^x$' } }), { a: 'y' }, '$.a', 'pattern'],
    ['maximum', object({ a: { type: 'number', maximum: 2 } }), { a: 3 }, '$.a', 'maximum'],
    ['format', object({ a: { type: 'string', format: 'date' } }), { a: '2026-02-30' }, '$.a', 'format'],
    ['enum', object({ a: { enum: ['x'] } }), { a: 'y' }, '$.a', 'enum'],
    ['const', object({ a: { const: 1 } }), { a: 2 }, '$.a', 'const'],
    ['type', object({ a: text }), { a: null }, '$.a', 'type'],
    ['required', object({ a: text }, { required: ['a'] }), {}, '$.a', 'required'],
    [
      'required, inherited names do not count',
      { ...object({ toString: text }), required: ['toString'] },
      {},
      '$.toString',
      'required',
    ],
    ['closed objects', object({ a: text }), { b: 1 }, '$.b', 'additionalProperties'],
    [
      'closed objects deep inside',
      object({ a: { type: 'array', items: object({ b: text }) } }),
      { a: [{}, { c: 1 }] },
      '$.a[1].c',
      'additionalProperties',
    ],
    [
      'closed composed objects',
      object({ a: text }, { allOf: [{ properties: { b: text } }] }),
      { c: 1 },
      '$.c',
      'additionalProperties',
    ],
    [
      'uniqueItems',
      object({ a: { type: 'array', uniqueItems: true } }),
      {
        a: [
          { x: 1, y: 2 },
          { y: 2, x: 1 },
        ],
      },
      '$.a',
      'uniqueItems',
    ],
    ['an odd name', object({ 'a b': text }), { 'a b': 1 }, '$["a b"]', 'type'],
    ['a name that is a number', object({ a: object({ 0: text }) }), { a: { 0: 1 } }, '$.a["0"]', 'type'],
    ['a list index', object({ a: { type: 'array', items: text } }), { a: ['x', 1] }, '$.a[1]', 'type'],
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
  it('lists every problem of a small input, and at most 20', () => {
    const schema = object({ list: { type: 'array', items: text } });
    assert.equal(problemsOf(schema, { list: [1, 'x', 2, 3] }).length, 3);
    assert.equal(problemsOf(schema, { list: Array.from({ length: 20 }, () => 1) }).length, 20);
    assert.equal(problemsOf(schema, { list: Array.from({ length: 21 }, () => 1) }).length, 20);
    assert.equal(problemsOf(schema, { list: Array.from({ length: 5_000 }, () => 1) }).length, 1);
  });
  it('never tells a value of the input', () => {
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
  it('are stripped before the schema sees them, and from what is bought', () => {
    const prepared = resourceOf(object({ a: text })).prepare(
      { a: 'x', _payment: 'proof', _authorization: {} },
      bytes('{"a":"x","_payment":"proof"}'),
    );
    assert.ok(prepared.ok);
    assert.deepEqual(prepared.input, { a: 'x' });
    assert.equal(Buffer.from(prepared.request.body ?? '').toString(), '{"a":"x"}');
  });
});

describe('hostile input stays cheap', () => {
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
  const a = (more: object) => object({ a: { type: 'string', ...more } });
  timed('an exponential pattern', a({ pattern: '^(a+)+$' }), { a: `${'a'.repeat(4_000)}!` });
  timed('an alternation that overlaps', a({ pattern: '^(a|a)*$' }), { a: `${'a'.repeat(4_000)}!` });
  timed('a quadratic pattern', a({ pattern: 'a*b' }), { a: 'a'.repeat(4_096) });
  timed('a huge string under a pattern', a({ pattern: '^(a|a)*$' }), { a: 'a'.repeat(250_000) });
  timed('a list of unequal objects', object({ a: { type: 'array', uniqueItems: true } }), {
    a: Array.from({ length: 20_000 }, (_, x) => ({ x })),
  });
  timed('a list of wrong items', object({ a: { type: 'array', items: text } }), {
    a: Array.from({ length: 120_000 }, () => 1),
  });
  timed(
    'an object of unknown names',
    object({}),
    Object.fromEntries(Array.from({ length: 10_000 }, (_, x) => [`n${x}`, x])),
  );
  for (const format of FORMATS)
    for (const piece of ['a', '1', 'a.', '1:', '@', '%41', '{x}', '-', '/', 'a@'])
      timed(`format ${format} on ${piece} repeated`, a({ format }), { a: piece.repeat(50_000).slice(0, 4_096) });

  const LONG: readonly (readonly [string, object])[] = [
    ['a pattern', { pattern: '^a*$' }],
    ['a pattern in not', { not: { pattern: 'evil' } }],
    ['a format', { format: 'uri' }],
  ];
  for (const [title, rule] of LONG)
    it(`a string longer than 4,096 characters never passes ${title}`, () => {
      const [problem] = problemsOf(a(rule), { a: 'a'.repeat(4_097) });
      assert.equal(problem?.keyword, 'maxLength');
    });
  it('a string of 4,096 characters passes', () =>
    assert.deepEqual(problemsOf(a({ pattern: '^a*$' }), { a: 'a'.repeat(4_096) }), []));
});
