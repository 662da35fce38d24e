import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { BackendRequest } from '../../src/backend/backend-exchange.ts';
import type { InputProblem } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { MAX_TARGET_LENGTH } from '../../src/resources/backend-request.ts';
import { FORMATS } from '../../src/resources/patterns/formats.ts';
import { isRepeatable } from '../../src/resources/resource.ts';
import { catalogueOf, object, resourceOf } from './resources.ts';

const text = { type: 'string' };
const any = object({}, { additionalProperties: true });
const ORIGIN = 'http://127.0.0.1:3000';

function built(schema: object, backend: object, input: unknown, raw?: string): BackendRequest {
  const prepared = resourceOf(schema, backend).prepare(
    input as JsonObject,
    raw === undefined ? undefined : Buffer.from(raw),
  );
  assert.ok(prepared.ok, JSON.stringify(prepared));
  return prepared.request;
}
const body = (request: BackendRequest): string | undefined => request.body && Buffer.from(request.body).toString();

/** Texts that redirect a request in some proxy or URL library. */
const HOSTILE: readonly string[] = [
  ...['', '.', '..', '...', '/', '//', '\\', '../admin', '..\\admin', './x', 'a/../b', 'a/..', '/..'],
  ...['..;/admin', '%2e%2e', '%2e%2e/admin', '.%2e', '%252e%252e', '%2f', '%5c', '..%2fadmin'],
  ...['..%5cadmin', '//evil.test/x', '/\\evil.test', '\\\\evil.test', 'http://evil.test'],
  ...['https:evil.test', '@evil.test/', ':80@evil.test', '?admin=1', '#frag', '&a=b', ';a=b', 'a b', 'a+b'],
  ...['\t', '\n', '\r\nHost: evil', '\u0000', 'a\u0000b', '\u007f', '\u0085', '\u2028', 'ü', '٠', '．．'],
  ...['。。', '%', '%zz', "'", '"', '<>', '{x}', '|', '^', '`', '~', '!*()', 'javascript:alert(1)', '😀'],
  ...['\ud800', 'a'.repeat(9_000)],
];

describe('an input value cannot redirect the request', () => {
  const inPath = resourceOf(object({ a: text }, { required: ['a'] }), { method: 'GET', path: '/base/{a}/end?fixed=1' });
  const inQuery = resourceOf(object({ a: text }), { method: 'GET', path: '/base/end?fixed=1' });
  const check = (value: string): void => {
    const path = inPath.prepare({ a: value }, undefined);
    if (path.ok) {
      const url = new URL(ORIGIN + path.request.path);
      assert.equal(url.origin, ORIGIN);
      assert.equal(url.pathname.split('/').length, 4);
      assert.equal(url.search, '?fixed=1');
      assert.equal(decodeURIComponent(url.pathname.split('/')[2] ?? ''), value);
      assert.match(path.request.path, /^[\x21-\x7e]+$/);
    }
    const query = inQuery.prepare({ a: value }, undefined);
    if (query.ok) {
      const url = new URL(ORIGIN + query.request.path);
      assert.equal(url.origin + url.pathname + url.hash, `${ORIGIN}/base/end`);
      assert.deepEqual([...url.searchParams].flat(), ['fixed', '1', 'a', value]);
    }
  };
  for (const value of HOSTILE) it(JSON.stringify(value.slice(0, 24)), () => check(value));
  it('whatever the value', () =>
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom(...'./\\%2eE5cC@:?#&;{}\t\n\0 a') })),
        check,
      ),
      { numRuns: 5_000 },
    ));

  const dots = ['', '.', '..', '../admin', '..\\admin', 'a/../b', 'a/..', './x'];
  for (const value of [...dots, '\t', 'a\nb', '\u0000', '\u007f', '\u0085', '\ud800'])
    it(`${JSON.stringify(value)} is refused in a path`, () => {
      const prepared = inPath.prepare({ a: value }, undefined);
      assert.ok(!prepared.ok);
      assert.deepEqual(
        prepared.problems.map(({ path, keyword }) => [path, keyword]),
        [['$.a', 'path']],
      );
    });
  it('an input without the property is refused too', () => {
    const open = resourceOf(object({ a: text }, { required: ['a'] }), { path: '/{a}' });
    assert.ok(!open.prepare({}, undefined).ok);
  });
});

describe('the request of an input', () => {
  const city = object({ city: text, days: { type: 'integer' }, tags: { type: 'array' } }, { required: ['city'] });
  for (const method of ['GET', 'DELETE'])
    it(`${method}: path first, the rest into the query, lists as repeated names, no body`, () => {
      const input = { days: 2, city: 'Köln', tags: ['a b', true, 1.5] };
      const request = built(city, { method, path: '/r/{city}?format=json' }, input);
      const query = 'format=json&days=2&tags=a%20b&tags=true&tags=1.5';
      assert.deepEqual([request.method, request.path], [method, `/r/K%C3%B6ln?${query}`]);
      assert.deepEqual([request.body, request.headers], [undefined, {}]);
    });
  for (const method of ['POST', 'PUT', 'PATCH'])
    it(`${method}: path first, the rest into a JSON body`, () => {
      const request = built(city, { method, path: '/r/{city}' }, { days: 2, city: 'x' }, '{"days":2,"city":"x"}');
      assert.deepEqual([request.path, body(request)], ['/r/x', '{"days":2}']);
      assert.deepEqual(request.headers, { 'content-type': 'application/json' });
    });
  it('has the original bytes when the body is the whole input', () => {
    const raw = '{ "n": 1.0, "m": 1e2 }';
    assert.equal(body(built(any, {}, { n: 1, m: 100 }, raw)), raw);
  });
  it('has the body {} for an input of no bytes', () => assert.equal(body(built(any, {}, {}, '')), '{}'));
  it('has a new body when there are no original bytes', () => assert.equal(body(built(any, {}, { n: 1 })), '{"n":1}'));
  it('has what explicit bindings name, and nothing else', () => {
    const schema = object(
      { id: text, dry: { type: 'boolean' }, items: { type: 'array' }, note: text },
      { required: ['id'] },
    );
    const request = built(
      schema,
      { path: '/o/{id}', inputBindings: { query: ['dry'], body: ['items'] } },
      { id: '7', dry: true, items: [1], note: 'private' },
      '{}',
    );
    assert.deepEqual([request.path, body(request)], ['/o/7?dry=true', '{"items":[1]}']);
  });
  it('has the value of one property as its whole body, and none without that property', () => {
    const schema = object({ id: text, body: {} }, { required: ['id'] });
    const backend = { path: '/o/{id}', inputBindings: { body: 'body' } };
    for (const value of [[1, 'a'], 'text', 7, false, null, { id: 'other' }])
      assert.equal(body(built(schema, backend, { id: '7', body: value })), JSON.stringify(value));
    const without = built(schema, backend, { id: '7' });
    assert.deepEqual([without.body, without.headers], [undefined, {}]);
  });
  it('has the media type of the configuration', () => {
    const request = built(any, { method: 'PATCH', contentType: 'application/merge-patch+json' }, { a: null });
    assert.deepEqual(request.headers, { 'content-type': 'application/merge-patch+json' });
    assert.equal(body(request), '{"a":null}');
  });
  it('has the fields of a form', () => {
    const request = built(
      object({ id: text, tags: { type: 'array' }, more: {} }, { required: ['id'] }),
      {
        path: '/o/{id}',
        contentType: 'application/x-www-form-urlencoded',
        inputBindings: { body: ['tags', 'more'], styles: { more: 'deepObject' } },
      },
      { id: '7', tags: ['a b', '&'], more: { x: [{ y: 1 }] } },
      '{}',
    );
    assert.equal(body(request), 'tags=a%20b&tags=%26&more%5Bx%5D%5B0%5D%5By%5D=1');
    assert.deepEqual(request.headers, { 'content-type': 'application/x-www-form-urlencoded' });
  });
  it('has a whole body as a form only if that is an object', () => {
    const backend = { contentType: 'application/x-www-form-urlencoded', inputBindings: { body: 'body' } };
    const schema = object({ body: {} });
    assert.equal(body(built(schema, backend, { body: { a: [1, 2] } })), 'a=1&a=2');
    for (const value of [[1], 'a', null])
      assert.ok(!resourceOf(schema, backend).prepare({ body: value }, undefined).ok);
  });
  it('has lists and objects in the query in the styles of the configuration', () => {
    const schema = object({ a: {}, b: {}, c: {}, d: {}, e: {}, f: {} });
    const styles = { b: 'comma', c: 'space', d: 'pipe', e: 'deepObject', f: 'json' };
    const request = built(
      schema,
      { method: 'GET', path: '/x', inputBindings: { query: ['a', 'b', 'c', 'd', 'e', 'f'], styles } },
      { a: [1, 2], b: [1, 'ü'], c: ['x', 'y'], d: ['x', 'y'], e: { k: { l: true }, m: [1] }, f: [{ n: null }] },
    );
    const query = 'a=1&a=2&b=1,%C3%BC&c=x%20y&d=x%7Cy&e%5Bk%5D%5Bl%5D=true&e%5Bm%5D%5B%5D=1';
    assert.equal(request.path, `/x?${query}&f=%5B%7B%22n%22%3Anull%7D%5D`);
  });
  it('has no empty list in the query, and a single value like one without a style', () => {
    const backend = (style: string) => ({
      method: 'GET',
      path: '/x',
      inputBindings: { query: ['a'], styles: { a: style } },
    });
    for (const style of ['comma', 'space', 'pipe', 'deepObject']) {
      assert.equal(built(object({ a: {} }), backend(style), { a: [] }).path, '/x');
      assert.equal(built(object({ a: {} }), backend(style), { a: 'b c' }).path, '/x?a=b%20c');
    }
  });
  for (const [style, value] of [
    ['comma', ['a,b']],
    ['space', ['a b']],
    ['pipe', ['a|b']],
    ['comma', [['a']]],
    ['comma', { a: 1 }],
    ['deepObject', { a: null }],
    ['deepObject', { a: '\udc00' }],
  ] as const)
    it(`refuses ${JSON.stringify(value)} in the style ${style}`, () => {
      const backend = { method: 'GET', path: '/x', inputBindings: { query: ['a'], styles: { a: style } } };
      const prepared = resourceOf(object({ a: {} }), backend).prepare({ a: value }, undefined);
      assert.ok(!prepared.ok);
      assert.deepEqual(
        prepared.problems.map(({ path, keyword }) => [path, keyword]),
        [['$.a', 'query']],
      );
    });
  const integer = { type: 'integer' };
  const NULLABLE: Readonly<Record<string, object>> = {
    'a list of types': { type: ['integer', 'null'] },
    anyOf: { anyOf: [integer, { type: 'null' }], title: 'N', default: null },
    oneOf: { oneOf: [{ const: null }, integer] },
    'an enum': { enum: [7, null] },
    'a type and an enum': { type: ['integer', 'null'], enum: [7, null] },
  };
  for (const [title, n] of Object.entries(NULLABLE)) {
    it(`has nothing of an optional null in query or form that ${title} allows`, () => {
      const schema = object({ q: text, n });
      const form = { contentType: 'application/x-www-form-urlencoded' };
      assert.equal(built(schema, { method: 'GET', path: '/x' }, { q: 'x', n: null }).path, '/x?q=x');
      assert.equal(built(schema, { method: 'GET', path: '/x' }, { q: 'x', n: 7 }).path, '/x?q=x&n=7');
      assert.equal(body(built(schema, form, { q: 'x', n: null })), 'q=x');
      assert.equal(body(built(schema, {}, { q: 'x', n: null })), '{"q":"x","n":null}');
    });
    it(`cannot have a null that ${title} allows in the path, nor where it is required`, () => {
      for (const path of ['/x/{n}', '/x']) {
        const schema = object({ n }, { required: ['n'] });
        const resource = resourceOf(schema, { method: 'GET', path });
        const prepared = resource.prepare({ n: null }, undefined);
        assert.ok(!prepared.ok && prepared.problems.every((problem) => problem.path === '$.n'));
        assert.ok(resource.prepare({ n: 7 }, undefined).ok);
        // The published schema says what the check says.
        const [listed] = catalogueOf(schema, { method: 'GET', path }).listed;
        assert.ok(!JSON.stringify(listed?.inputSchema).includes('null'));
      }
    });
  }
  it('has null as JSON text, and what was bought keeps it', () => {
    const schema = object({ n: { type: ['integer', 'null'] } });
    const json = { method: 'GET', path: '/x', inputBindings: { query: ['n'], styles: { n: 'json' } } };
    assert.equal(built(schema, json, { n: null }).path, '/x?n=null');
    const prepared = resourceOf(schema, { method: 'GET' }).prepare({ n: null }, undefined);
    assert.deepEqual(prepared.ok && prepared.input, { n: null });
  });
  it('has no body when explicit bindings name none', () =>
    assert.equal(built(object({ a: text }), { inputBindings: { query: ['a'] } }, { a: 'x' }).body, undefined));
  it('has the configured headers', () =>
    assert.deepEqual(built(any, { method: 'GET', headers: { 'X-Key': 'v' } }, {}).headers, { 'x-key': 'v' }));

  const REFUSED: readonly (readonly [string, unknown])[] = [
    ['an object', { x: 1 }],
    ['null', null],
    ['a list of objects', [{ x: 1 }]],
    ['a list of lists', [[1]]],
    ['half a surrogate pair', '\udc00'],
  ];
  for (const [title, value] of REFUSED)
    it(`cannot have ${title} in a query`, () => {
      const prepared = resourceOf(any, { method: 'GET' }).prepare({ a: value } as JsonObject, undefined);
      assert.ok(!prepared.ok);
      assert.deepEqual(
        prepared.problems.map(({ path, keyword }) => [path, keyword]),
        [['$.a', 'query']],
      );
    });
  for (const name of ['format', 'for mat'])
    it(`cannot have a second "${name}" in the query`, () => {
      const resource = resourceOf(any, { method: 'GET', path: '/x?format=json&for+mat=1' });
      const prepared = resource.prepare({ [name]: 'xml' }, undefined);
      assert.ok(!prepared.ok);
      assert.match(prepared.problems[0]?.message ?? '', /already part of the configured URL/);
    });
  it('cannot have a URL longer than 8,192 bytes', () => {
    const resource = resourceOf(any, { method: 'GET', path: '/x' });
    const room = MAX_TARGET_LENGTH - '/x?a='.length;
    assert.ok(resource.prepare({ a: 'x'.repeat(room) }, undefined).ok);
    assert.ok(!resource.prepare({ a: 'x'.repeat(room + 1) }, undefined).ok);
  });
  it('may have parameters in a part of a segment', () => {
    const backend = { method: 'GET', path: '/files/report-{a}.json' };
    const { path } = built(object({ a: text }, { required: ['a'] }), backend, { a: 'x.y' });
    assert.equal(path, '/files/report-x.y.json');
  });
});

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

describe('an operation that may be asked for twice', () => {
  for (const method of ['GET', 'PUT', 'DELETE'] as const)
    it(`is every ${method}`, () => {
      assert.equal(isRepeatable({ method, idempotent: false }), true);
    });

  for (const method of ['POST', 'PATCH'] as const)
    it(`is a ${method} only where the merchant says so`, () => {
      assert.deepEqual(
        [false, true].map((idempotent) => isRepeatable({ method, idempotent })),
        [false, true],
      );
    });
});
