import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WrittenResource } from '../../src/config/document/document.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { DOCUMENTS, readDocument } from './documents.ts';
import { failuresOf, importDocument, runDocument } from './run.ts';

/** Operations of each document that are called; `node verification/import/main.ts` calls all. */
const CALLED = 20;
const GOAL = 0.95;

describe('operations of large public documents', () => {
  for (const document of DOCUMENTS)
    it(`${document.name}: nearly all become resources that answer`, async () => {
      const outcome = await runDocument(await readDocument(document), {
        ignoreSecurity: document.secured,
        most: CALLED,
      });
      assert.ok(outcome.called >= CALLED, `${outcome.called} were called`);
      assert.deepEqual(outcome.failures, []);
      const reasons = outcome.skipped.map(({ operation, reason }) => `${operation}: ${reason}`);
      assert.ok(outcome.imported / outcome.operations >= GOAL, reasons.join('\n'));
    });

  it('are skipped for their credentials unless that is said to be of no concern', async () => {
    const secured = DOCUMENTS.find(({ name }) => name === 'Kubernetes');
    assert.ok(secured !== undefined);
    const { resources, skipped } = importDocument(await readDocument(secured), false);
    assert.deepEqual(Object.keys(resources), []);
    assert.ok(skipped.some(({ reason }) => /needs credentials of the caller \(BearerToken/.test(reason)));
  });
});

const list = { type: 'array', items: { type: 'string' } };
const filter = { type: 'object', properties: { min: { type: 'integer' }, name: { type: 'string' } } };
const inQuery = (schema: object, more: object = {}) => ({
  parameters: [{ name: 'a', in: 'query', required: true, schema, ...more }],
});
const inBody = (schema: object, type = 'application/json', more: object = {}) => ({
  requestBody: { required: true, content: { [type]: { schema, ...more } } },
});
const FORM = 'application/x-www-form-urlencoded';

/** One operation for each way in which an input becomes a request. */
const EVERY_WAY: Readonly<Record<string, object>> = {
  exploded: inQuery({ ...list, minItems: 2 }),
  comma: inQuery({ ...list, minItems: 2 }, { explode: false }),
  space: inQuery({ ...list, minItems: 2 }, { style: 'spaceDelimited', explode: false }),
  pipe: inQuery({ ...list, minItems: 2 }, { style: 'pipeDelimited', explode: false }),
  deep: inQuery({ ...filter, required: ['min'] }, { style: 'deepObject', explode: true }),
  members: inBody({ ...filter, required: ['min'] }),
  whole: inBody({ ...list, minItems: 1 }),
  open: inBody({ type: 'object', additionalProperties: { type: 'integer' }, minProperties: 1 }),
  patch: inBody({ ...filter, required: ['min'] }, 'application/merge-patch+json'),
};
const FORM_WAYS: Readonly<Record<string, object>> = {
  form: inBody({ ...filter, required: ['min'] }, FORM),
  tags: inBody({ type: 'object', properties: { a: { ...list, minItems: 2 } }, required: ['a'] }, FORM),
  nested: inBody(
    { type: 'object', properties: { a: { ...filter, required: ['min', 'name'] } }, required: ['a'] },
    FORM,
    { encoding: { a: { style: 'deepObject', explode: true } } },
  ),
};

function documentOf(operations: Readonly<Record<string, object>>, openapi: string): JsonObject {
  const responses = { 200: { description: 'It' } };
  return {
    openapi,
    info: { title: 'It', version: '1' },
    servers: [{ url: '/v1' }],
    paths: Object.fromEntries(
      Object.entries(operations).map(([name, operation]) => [
        `/${name}/{id}`,
        {
          parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
          ['requestBody' in operation ? 'patch' : 'get']: { operationId: name, responses, ...operation },
        },
      ]),
    ),
  };
}

describe('the merchant that judges', () => {
  for (const version of ['3.0.3', '3.1.0'])
    for (const operations of [EVERY_WAY, FORM_WAYS])
      it(`is content with each way of a request (${version}, ${Object.keys(operations).length} ways)`, async () => {
        const document = documentOf(operations, version);
        const { resources } = importDocument(document, false);
        assert.deepEqual(Object.keys(resources), Object.keys(operations));
        assert.deepEqual(await failuresOf(document, resources), []);
      });

  type Backend = WrittenResource['backend'];
  const WRONG: readonly (readonly [string, string, (backend: Backend) => Partial<Backend>])[] = [
    ['a list in one pair', 'exploded', () => ({ inputBindings: { query: ['a'], styles: { a: 'comma' } } })],
    ['another separator', 'comma', () => ({ inputBindings: { query: ['a'], styles: { a: 'pipe' } } })],
    ['another separator', 'space', () => ({ inputBindings: { query: ['a'], styles: { a: 'comma' } } })],
    ['another separator', 'pipe', () => ({ inputBindings: { query: ['a'], styles: { a: 'space' } } })],
    ['no query', 'exploded', () => ({ inputBindings: {} })],
    ['no body', 'members', () => ({ inputBindings: {} })],
    ['members in the query', 'members', () => ({ inputBindings: { query: ['min', 'name'] } })],
    ['a body within a body', 'whole', () => ({ inputBindings: { body: ['body'] } })],
    ['another media type', 'patch', () => ({ contentType: 'application/json' })],
    ['another path', 'members', ({ path }) => ({ path: path.replace('/v1', '') })],
  ];
  for (const [title, name, change] of WRONG)
    it(`notices ${title} (${name})`, async () => {
      const document = documentOf({ [name]: EVERY_WAY[name] ?? {} }, '3.0.3');
      const resource = importDocument(document, false).resources[name];
      assert.ok(resource !== undefined);
      const backend = { ...resource.backend, ...change(resource.backend) };
      assert.equal((await failuresOf(document, { [name]: { ...resource, backend } })).length, 1);
    });
});
