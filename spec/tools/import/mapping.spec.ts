import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { imported, resourceOf, TABLES } from './openapi.ts';

const text = { type: 'string' };
const list = { type: 'array', items: text };
const filter = { type: 'object', properties: { min: { type: 'integer' } } };
const query = (name: string, schema: object, more: object = {}) => ({ name, in: 'query', schema, ...more });
const inPath = (name: string, schema: object = text, more: object = {}) => ({
  ...{ name, in: 'path', required: true, schema },
  ...more,
});
const json = (schema: object, more: object = {}) => ({
  required: true,
  content: { 'application/json': { schema } },
  ...more,
});

function get(parameters: readonly object[], path = '/x') {
  return imported({ [path]: { get: { parameters } } });
}

function post(requestBody: object, parameters: readonly object[] = [], path = '/x') {
  return imported({ [path]: { post: { parameters, requestBody } } });
}

describe('the request of an imported operation', () => {
  it('needs no bindings where the usual ones are right', () => {
    const result = get(
      [inPath('id', { type: 'integer' }), query('q', text, { required: true, description: 'Words' })],
      '/x/{id}',
    );
    const resource = resourceOf(result);
    assert.deepEqual(resource.backend, { method: 'GET', path: '/x/{id}' });
    assert.deepEqual(resource.inputSchema, {
      type: 'object',
      properties: { id: { type: 'integer' }, q: { type: 'string', description: 'Words' } },
      required: ['id', 'q'],
    });
  });

  it('has no input schema where nothing goes in', () => {
    const resource = resourceOf(get([]));
    assert.ok(!('inputSchema' in resource));
    assert.deepEqual(resource.backend, { method: 'GET', path: '/x' });
  });

  it('has no body where the operation has none', () =>
    assert.deepEqual(resourceOf(imported({ '/x': { post: {} } })).backend.inputBindings, {}));

  const STYLES: readonly (readonly [string, object, string | undefined])[] = [
    ['form, exploded', query('a', list), undefined],
    ['form', query('a', list, { explode: false }), 'comma'],
    ['spaceDelimited', query('a', list, { style: 'spaceDelimited' }), 'space'],
    ['pipeDelimited', query('a', list, { style: 'pipeDelimited', explode: false }), 'pipe'],
    ['pipeDelimited, exploded', query('a', list, { style: 'pipeDelimited', explode: true }), undefined],
    ['deepObject', query('a', filter, { style: 'deepObject', explode: true }), 'deepObject'],
    ['deepObject of a list', query('a', list, { style: 'deepObject' }), 'deepObject'],
    ['deepObject of a scalar', query('a', text, { style: 'deepObject' }), undefined],
    ['JSON text', { name: 'a', in: 'query', content: { 'application/json': { schema: filter } } }, 'json'],
    ['a list or a scalar', query('a', { oneOf: [text, list] }, { explode: false }), 'comma'],
  ];
  for (const [title, parameter, style] of STYLES)
    it(`has a query parameter in the style ${title}`, () => {
      const { inputBindings } = resourceOf(get([parameter])).backend;
      assert.deepEqual(inputBindings, style === undefined ? undefined : { query: ['a'], styles: { a: style } });
    });

  it('has the members of a JSON body beside its parameters', () => {
    const body = { type: 'object', properties: { a: text, b: text }, required: ['a'] };
    const resource = resourceOf(post(json(body), [inPath('id'), query('dry', { type: 'boolean' })], '/x/{id}'));
    assert.deepEqual(resource.inputSchema?.['required'], ['id', 'a']);
    assert.deepEqual(Object.keys(resource.inputSchema?.['properties'] ?? {}), ['id', 'dry', 'a', 'b']);
    assert.deepEqual(resource.backend.inputBindings, { query: ['dry'], body: ['a', 'b'] });
  });

  const WHOLE: readonly (readonly [string, object])[] = [
    ['is a list', list],
    ['is a scalar', text],
    ['is open', { type: 'object', additionalProperties: text }],
    ['is a choice', { oneOf: [filter, list] }],
    ['has a name of the path', { type: 'object', properties: { id: text } }],
    ['may be null', { type: ['object', 'null'], properties: { a: text } }],
  ];
  for (const [title, schema] of WHOLE)
    it(`has the whole body under one name where it ${title}`, () => {
      const resource = resourceOf(post(json(schema), [inPath('id')], '/x/{id}'));
      assert.deepEqual(resource.backend.inputBindings, { body: 'body' });
      assert.deepEqual(resource.inputSchema?.['required'], ['id', 'body']);
    });

  it('finds a free name for the whole body', () => {
    const resource = resourceOf(post(json(list), [query('body', text)]));
    assert.deepEqual(resource.backend.inputBindings, { query: ['body'], body: 'body_2' });
  });

  it('may have no body only if the document says so', () => {
    const body = { type: 'object', properties: { a: text }, required: ['a'] };
    const optional = resourceOf(post(json(body, { required: false })));
    assert.ok(!('required' in (optional.inputSchema ?? {})));
    assert.deepEqual(optional.backend.inputBindings, { body: 'body' });
    const { required: _required, ...unsaid } = json(body);
    assert.deepEqual(resourceOf(post(unsaid)).inputSchema?.['required'], ['a']);
  });

  it('has a form in the styles of its encoding', () => {
    const properties = { a: text, tags: list, meta: filter, deep: filter, csv: list };
    const encoding = { deep: { style: 'deepObject', explode: true }, csv: { style: 'form', explode: false } };
    const content = { 'application/x-www-form-urlencoded': { schema: { type: 'object', properties }, encoding } };
    const { backend } = resourceOf(post({ required: true, content }));
    assert.equal(backend.contentType, 'application/x-www-form-urlencoded');
    assert.deepEqual(backend.inputBindings?.styles, { meta: 'json', deep: 'deepObject', csv: 'comma' });
  });

  it('takes no list and no object of which nothing would arrive', () => {
    const required = resourceOf(get([query('a', list, { required: true })]));
    assert.deepEqual(required.inputSchema?.['properties'], { a: { ...list, minItems: 1 } });
    const inside = { type: 'object', properties: { tags: list } };
    const deep = resourceOf(get([query('a', inside, { style: 'deepObject' })]));
    assert.deepEqual(deep.inputSchema?.['properties'], {
      a: { type: 'object', properties: { tags: { ...list, minItems: 1 } } },
    });
    const form = { type: 'object', properties: { a: list, b: list, c: { type: 'object' } }, required: ['a', 'c'] };
    const sent = resourceOf(post({ content: { 'application/x-www-form-urlencoded': { schema: form } } }));
    const open = { type: 'object', additionalProperties: true };
    assert.deepEqual(sent.inputSchema?.['properties'], { a: { ...list, minItems: 1 }, b: list, c: open });
  });

  for (const [types, chosen] of [
    [['text/plain', 'application/json'], undefined],
    [['*/*'], undefined],
    [['application/json-patch+json', 'application/merge-patch+json'], 'application/merge-patch+json'],
    [['application/vnd.it.v1+json; charset=utf-8'], 'application/vnd.it.v1+json'],
    [['multipart/form-data', 'application/x-www-form-urlencoded'], 'application/x-www-form-urlencoded'],
  ] as const)
    it(`is ${chosen ?? 'application/json'} where the document has ${types.join(', ')}`, () => {
      const content = Object.fromEntries(types.map((type) => [type, { schema: filter }]));
      assert.equal(resourceOf(post({ required: true, content })).backend.contentType, chosen);
    });

  it('has a required header of which there is one value', () => {
    const version = { name: 'X-Version', in: 'header', required: true, schema: { type: 'string', enum: ['2026-01'] } };
    assert.deepEqual(resourceOf(get([version])).backend.headers, { 'X-Version': '2026-01' });
  });

  it('leaves out what is optional and cannot be sent, and says so', () => {
    const result = get(
      [
        { name: 'X-Trace', in: 'header', schema: text },
        { name: 'Accept', in: 'header', required: true, schema: text },
        { name: 'session', in: 'cookie', schema: text },
        query('sort', filter),
        query('id', text),
        inPath('id'),
      ],
      '/x/{id}',
    );
    assert.deepEqual(Object.keys(resourceOf(result).inputSchema?.['properties'] ?? {}), ['id']);
    assert.deepEqual(
      result.narrowed.map(({ path, reason }) => `${path}: ${reason}`),
      [
        'X-Trace: is a header: put X-Trace under backend.headers of the configuration to send it',
        'session: goes into the cookie: declare it in: query',
        'sort: is written in the style form, an object: use deepObject',
        'id: has the name of a path parameter: rename one',
      ],
    );
  });

  it('has an optional body where null is one and the document does not say', () => {
    const body = { anyOf: [{ type: 'object', properties: { a: text } }, { type: 'null' }] };
    const requiredOf = (more: object) => resourceOf(post(json(body, more))).inputSchema?.['required'];
    assert.deepEqual([requiredOf({ required: undefined }), requiredOf({})], [undefined, ['body']]);
  });

  it('has a header once, whose names differ by case, as the last of them says', () => {
    const header = (name: string, schema: object) => ({ name, in: 'header', required: true, schema });
    const resource = resourceOf(get([header('x-version', text), header('X-Version', { ...text, enum: ['2'] })]));
    assert.deepEqual(resource.backend.headers, { 'X-Version': '2' });
  });

  it('leaves out the optional body of a DELETE', () => {
    const result = imported({ '/x': { delete: { requestBody: { content: { 'application/json': {} } } } } });
    assert.deepEqual(resourceOf(result).backend, { method: 'DELETE', path: '/x' });
    assert.match(result.narrowed[0]?.reason ?? '', /no resource of DELETE has/);
  });

  it('has parameters of the path item, which those of the operation replace', () => {
    const result = imported({
      '/x/{id}': { parameters: [inPath('id'), query('a', text)], get: { parameters: [query('a', list)] } },
    });
    assert.deepEqual(resourceOf(result).inputSchema?.['properties'], { id: text, a: list });
  });

  it('has a path parameter that the document forgot', () =>
    assert.deepEqual(resourceOf(get([], '/x/{id}')).inputSchema, {
      ...{ type: 'object', properties: { id: text }, required: ['id'] },
    }));

  it('has the path of the server before it, or what stands in its place', () => {
    const servers = [{ url: 'https://{region}.example.com/{version}/', variables: { version: { default: 'v2' } } }];
    const paths = { '/x': { get: {} } };
    assert.equal(resourceOf(imported(paths, { servers })).backend.path, '/v2/x');
    assert.equal(resourceOf(imported(paths, { servers }, { basePath: '' })).backend.path, '/x');
    assert.equal(resourceOf(imported(paths, { servers }, { basePath: '/app' })).backend.path, '/app/x');
    assert.equal(resourceOf(imported(paths)).backend.path, '/x');
    const own = { '/x': { servers: [{ url: '/v3' }], get: {} } };
    assert.equal(resourceOf(imported(own, { servers })).backend.path, '/v3/x');
  });
});

describe('a document of many files names its way out where one was not read', () => {
  const answer = { responses: { 200: { description: '' } } };
  for (const [title, item] of [
    ['a schema beside it', { post: { requestBody: json({ $ref: './schemas/a.yaml' }), ...answer } }],
    ['a schema above it', { post: { requestBody: json({ $ref: '../a.yaml#/A' }), ...answer } }],
    ['a schema elsewhere', { post: { requestBody: json({ $ref: 'https://example.com/a.json' }), ...answer } }],
    ['a whole path', { $ref: './paths/x.yaml' }],
    ['a parameter', { get: { parameters: [{ $ref: 'parameters.yaml#/page' }] } }],
  ] as const)
    it(title, () => {
      const [skipped] = imported({ '/x': item }).skipped;
      assert.match(skipped?.reason ?? '', /no file that was read beside the document: make one file .* bundle/);
    });
});

describe('a header that is sent anyway', () => {
  const needed = (name: string, more: object = {}) => ({ name, in: 'header', required: true, schema: text, ...more });
  const operation = (parameter: object, more: object = {}) => ({
    '/x': { post: { parameters: [parameter], ...more } },
  });

  for (const [title, parameter, more, options] of [
    ['an idempotency key of a priced call', needed('Idempotency-Key'), { 'x-price': '0.01' }, {}],
    ['an idempotency key, by --price', needed('idempotency-key'), {}, { price: '0.01' }],
    ['a header of the configuration', needed('X-Tenant'), {}, { headers: ['x-tenant'] }],
    ['Authorization of the configuration', needed('Authorization'), {}, { headers: ['Authorization'] }],
    ['a request id', needed('X-Request-ID'), {}, {}],
  ] as const)
    it(`is needed by an operation that becomes a resource: ${title}`, () => {
      const result = imported(operation(parameter, more), {}, options);
      assert.deepEqual(resourceOf(result).backend.headers, undefined);
      assert.deepEqual(result.narrowed, []);
    });

  it('is no input that is left out where it is optional', () => {
    const parameters = ['Idempotency-Key', 'traceparent', 'X-Request-Id', 'X-Tenant'].map((name) => ({
      ...{ name, in: 'header', schema: text },
    }));
    const result = imported({ '/x': { post: { parameters } } }, {}, { headers: ['X-Tenant'] });
    assert.deepEqual(result.narrowed, []);
  });

  it('holds the credentials of a security scheme', () => {
    const securitySchemes = {
      key: { type: 'apiKey', in: 'header', name: 'X-Key' },
      bearer: { type: 'http', scheme: 'bearer' },
    };
    const secured = (name: string, headers: string[]) =>
      imported({ '/x': { get: { security: [{ [name]: [] }] } } }, { components: { securitySchemes } }, { headers });
    assert.equal(secured('key', ['x-key']).skipped.length, 0);
    assert.equal(secured('bearer', ['Authorization']).skipped.length, 0);
    assert.equal(secured('key', ['Authorization']).skipped.length, 1);
    assert.equal(secured('bearer', []).skipped.length, 1);
  });

  for (const [title, parameter, reason] of [
    ['an idempotency key of a free call', needed('Idempotency-Key'), /sent with priced calls alone: give .* a price/],
    ['another header', needed('X-Tenant'), /is a header: put X-Tenant under backend\.headers/],
    ['a trace context, which some calls have', needed('traceparent'), /sent where the caller has it/],
  ] as const)
    it(`keeps an operation out: ${title}`, () =>
      assert.match(imported(operation(parameter)).skipped[0]?.reason ?? '', reason));
});

describe('an optional parameter of FastAPI', () => {
  for (const [title, schema, more] of [
    ['anyOf with null', { anyOf: [{ type: 'integer' }, { type: 'null' }], title: 'N' }, {}],
    ['3.0 nullable', { type: 'integer', nullable: true }, { openapi: '3.0.3' }],
    ['a list or null', { anyOf: [{ type: 'array', items: text }, { type: 'null' }] }, {}],
    ['an enum or null', { anyOf: [{ type: 'string', enum: ['a'] }, { type: 'null' }], default: null }, {}],
  ] as const)
    it(`is sold in place: ${title}`, () => {
      const result = imported({ '/x': { get: { parameters: [query('n', schema)] } } }, more, { expose: ['origin'] });
      assert.equal(resourceOf(result).backend.path, '/x');
    });
});

describe('a path in the notation of a router', () => {
  for (const [path, name, template] of [
    ['/users/:id', 'id', '/users/{id}'],
    ['/users/:id/posts', 'id', '/users/{id}/posts'],
    ['/users/:id(\\d+)?', 'id', '/users/{id}'],
    ['/users/{id?}', 'id', '/users/{id}'],
    ['/users/{{id}}', 'id', '/users/{id}'],
    ['/users/{id:[0-9]{3}}', 'id', '/users/{id}'],
    ['/users/<id>', 'id', '/users/{id}'],
    ['/users/<int:id>', 'id', '/users/{id}'],
    ['/files/{rest:path}', 'rest', '/files/{rest}'],
    ['/files/{*rest}', 'rest', '/files/{rest}'],
    ['/files/*rest', 'rest', '/files/{rest}'],
    ['/files/{+rest}', 'rest', '/files/{rest}'],
    ['/users/{userId}', 'user_id', '/users/{user_id}'],
    ['/users/{id}{?q}', 'id', '/users/{id}'],
    ['/users/{id}#add', 'id', '/users/{id}'],
    ['/users/{id}:ban', 'id', '/users/{id}:ban'],
    ['/users/{a:b}', 'a:b', '/users/{a:b}'],
  ] as const)
    it(`${path} is ${template}`, () => {
      const { backend, inputSchema } = resourceOf(get([inPath(name)], path));
      assert.equal(backend.path, template);
      assert.deepEqual([Object.keys(inputSchema?.['properties'] ?? {}), inputSchema?.['required']], [[name], [name]]);
    });

  it('stands for two operations where fragments tell them apart', () => {
    const result = imported({ '/x#a': { put: { operationId: 'a' } }, '/x#b': { put: { operationId: 'b' } } });
    assert.deepEqual(Object.keys(result.resources), ['a', 'b']);
  });
});

describe('an operation is skipped with its reason', () => {
  for (const { title, operation: item, says } of TABLES.skipped)
    it(title, () => {
      const result = imported({ '/x': item, '/y': { get: {} } }, { servers: [{ url: 'https://example.com' }] });
      assert.deepEqual(Object.keys(result.resources), ['get_y']);
      assert.equal(result.skipped.length, 1);
      assert.match(result.skipped[0]?.reason ?? '', new RegExp(says));
      assert.match(result.skipped[0]?.operation ?? '', /^[A-Z]+ \/x$/);
      // What is wrong, then what to do.
      assert.match(result.skipped[0]?.reason ?? '', /\w.*: \w/);
    });

  for (const [title, path, parameter, reason] of [
    ['a list in the path', '/x/{a}', inPath('a', list), /a list or an object in the path/],
    ['a label in the path', '/x/{a}', inPath('a', text, { style: 'label' }), /in the style label/],
    ['a whole rest of the path', '/files/*', query('a', text), /has a \* in its path: write \{name\}/],
    ['a colon without a parameter', '/x/:a', query('a', text), /has :a in its path, .* declare the path parameter a/],
    ['angle brackets without a parameter', '/x/<a>', query('b', text), /has <a> in its path, .* written \{a\}/],
    ['a parameter that is not in the path', '/x', inPath('a'), /parameter a, which is not in its path: write \{a\}/],
    ['a parameter in braces of another name', '/x/{b}', inPath('a'), /parameter a, which is not in its path/],
    [
      'a parameter in the query',
      '/x?a={a}',
      inPath('a'),
      /has the path \/x\?a=\{a\}, which must not have \{…\} in the query/,
    ],
    ['two parameters of a name', '/x/{a}/{a}', inPath('a'), /names the same parameter twice/],
  ] as const)
    it(title, () => {
      const result = get([parameter], path);
      assert.deepEqual(Object.keys(result.resources), []);
      assert.match(result.skipped[0]?.reason ?? '', reason);
    });

  it('unless credentials are none of its concern', () => {
    const secured = {
      '/x': { get: { security: [{ key: [] }], parameters: [{ name: 'Authorization', in: 'header', required: true }] } },
    };
    assert.equal(imported(secured).skipped.length, 1);
    assert.equal(imported(secured, {}, { ignoreSecurity: true }).skipped.length, 0);
    assert.equal(imported({ '/x': { get: {} } }, { security: [{ key: [] }] }).skipped.length, 1);
    for (const security of [[], [{}], [{ key: [] }, {}]])
      assert.equal(imported({ '/x': { get: { security } } }, { security: [{ key: [] }] }).skipped.length, 0);
  });
});

describe('the price of an operation', () => {
  const priceOf = (operation: object, options: object = {}) =>
    resourceOf(imported({ '/x': { get: operation } }, {}, options)).pricing;
  it('is nothing unless one is given', () => assert.deepEqual(priceOf({}), { type: 'free' }));
  it('is the price for all', () =>
    assert.deepEqual(priceOf({}, { price: '0.01', currency: 'TUSD' }), {
      type: 'fixed',
      amount: '0.01',
      currency: 'TUSD',
    }));
  for (const [own, pricing] of [
    ['0.5', { type: 'fixed', amount: '0.5', currency: 'USDC' }],
    [0.25, { type: 'fixed', amount: '0.25', currency: 'USDC' }],
    [
      { amount: '2', currency: 'EUR' },
      { type: 'fixed', amount: '2', currency: 'EUR' },
    ],
    [{ amount: '2' }, { type: 'fixed', amount: '2', currency: 'USDC' }],
    ['0', { type: 'free' }],
    ['0.00', { type: 'free' }],
  ] as const)
    it(`is its own x-price ${JSON.stringify(own)}`, () =>
      assert.deepEqual(priceOf({ 'x-price': own }, { price: '9' }), pricing));
});

describe('names', () => {
  it('are legal and given once', () => {
    const long = 'x'.repeat(80);
    const { resources } = imported({
      '/a': { get: { operationId: 'users.list/all!' }, post: { operationId: 'users list all' } },
      '/b/{id}.json': { get: {}, delete: { operationId: '' } },
      '/c': { get: { operationId: long }, post: { operationId: long } },
      '/ü': { get: { operationId: 'ü' } },
      '/__proto__': { get: { operationId: '__proto__' } },
    });
    assert.deepEqual(Object.keys(resources), [
      ...['users_list_all', 'users_list_all_2', 'get_b_id_json', 'delete_b_id_json'],
      ...['x'.repeat(64), `${'x'.repeat(62)}_2`, 'get', 'proto'],
    ]);
  });

  it('come from summary, operationId or path, and descriptions only if they say more', () => {
    const { resources } = imported({
      '/a': { get: { summary: ' All  things\n', description: 'All things', operationId: 'a' } },
      '/b': { get: { operationId: 'b', description: `It is\u202e long. ${'word '.repeat(600)}` } },
      '/c': { get: { summary: 's'.repeat(300) } },
      '/d': { get: {} },
    });
    const [a, b, c, d] = Object.values(resources);
    assert.deepEqual([a?.name, a?.description, b?.name, d?.name], ['All things', undefined, 'b', 'GET /d']);
    assert.match(b?.description ?? '', /^It is long\. word .*…$/);
    assert.ok((b?.description?.length ?? 0) <= 2_000);
    assert.equal(c?.name.length, 200);
  });

  it('tell the media type of an answer that is not JSON', () => {
    const answers = (types: readonly string[]) => ({
      get: { responses: { 200: { description: '', content: Object.fromEntries(types.map((type) => [type, {}])) } } },
    });
    const typeOf = (types: readonly string[]) => resourceOf(imported({ '/x': answers(types) })).mimeType;
    assert.equal(typeOf(['text/csv; charset=utf-8']), 'text/csv');
    for (const types of [[], ['application/json'], ['text/html', 'application/json'], ['*/*'], ['application/it+json']])
      assert.equal(typeOf(types), undefined);
  });
});

describe('the choice of operations', () => {
  const paths = {
    '/a': { get: { operationId: 'a', tags: ['read'] }, post: { tags: ['write'] } },
    '/b': { get: { operationId: 'b', tags: ['read', 'b'] } },
  };
  const chosen = (tags: readonly string[], operations: readonly string[]) => {
    const { resources, notChosen } = imported(paths, {}, { choice: { tags, operations } });
    return [Object.keys(resources).join(' '), notChosen];
  };
  it('is by tag, by operationId, or by method and path', () => {
    assert.deepEqual(chosen([], []), ['a post_a b', 0]);
    assert.deepEqual(chosen(['read'], []), ['a b', 1]);
    assert.deepEqual(chosen(['b'], ['POST /a']), ['post_a b', 1]);
    assert.deepEqual(chosen([], ['a']), ['a', 2]);
  });
  it('refuses what the document does not have, and names what is near', () => {
    assert.throws(() => chosen(['raed'], []), /no tag "raed"; did you mean read\?/);
    assert.throws(() => chosen([], ['GET /c']), /no operation "GET \/c"/);
  });
});

describe('a document that is none', () => {
  for (const [document, message] of [
    [{ swagger: '2.0' }, /is Swagger 2\.0: convert it/],
    [{ openapi: '4.0.0', paths: {} }, /is OpenAPI 4\.0\.0; 3\.0, 3\.1 and 3\.2 are read/],
    [{ openapi: 3 }, /has no openapi/],
    [{ openapi: '3.1.0', paths: [] }, /paths of the document is no object/],
  ] as const)
    it(`is refused: ${JSON.stringify(document)}`, () =>
      assert.throws(() => imported({}, { paths: {}, openapi: undefined, ...document }), message));
});
