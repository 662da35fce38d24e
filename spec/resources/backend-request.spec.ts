import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { BackendRequest } from '../../src/backend/exchange.ts';
import type { JsonObject } from '../../src/json/types.ts';
import { MAX_TARGET_LENGTH } from '../../src/resources/backend-request.ts';
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
