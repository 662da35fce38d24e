import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import { runImport } from '../../../tools/import/command.ts';
import { type ConfigObject, NO_CHAIN } from '../../support/config.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { answerJson, type HttpServer, serveHttp } from '../../support/http-server.ts';
import { sampleResources } from '../../support/resources.ts';

const FIXTURES = join(import.meta.dirname, '../../fixtures/import');
const UUID = '123e4567-e89b-42d3-a456-426614174000';
const sock = { name: 'sock', price: 1 };
const card = { kind: 'card', number: '1234' };
const placed = '2026-01-02T03:04:05Z';
const order = { pay: card, items: [sock], at: [1, 2.5], placed };
const item = { ...sock, sorts: ['name'] };
const nested = { pay: card, items: [item], grid: [[1, 2], [3]], placed, labels: { a: 'b' }, ship: null, sort: null };

/** What the backend receives: request line, and JSON or the text of a form. */
type Arriving = readonly [line: string, body?: Json];

interface Framework {
  /** Names the document, which says what wrote it, and the schemas that are published of it. */
  readonly file: string;
  readonly skipped: Readonly<Record<string, RegExp>>;
  readonly leftOut: Readonly<Record<string, RegExp>>;
  /** Inputs that a service of the framework takes, by the operation, and what arrives for them. */
  readonly takes: readonly (readonly [id: string, input: JsonObject, arriving: Arriving])[];
  /** Those that it answers with a fault of the caller. */
  readonly refuses: readonly (readonly [id: string, input: JsonObject])[];
}

const NO_FORM_WITH_FILES =
  /^needs a body, which is multipart\/form-data: JSON and URL-encoded forms are sent, so add one of them under content$/;
const LOGIN = (scheme: string) =>
  new RegExp(
    `^needs credentials of the caller \\(${scheme}\\): put them under backend\\.headers of the configuration, and add --ignore-security$`,
  );
const HEADER = (name: string) =>
  new RegExp(
    `^needs the header parameter ${name}, which is a header: put ${name} under backend\\.headers of the configuration$`,
  );
const RECURSIVE = /^is recursive: only what is optional can be left out$/;

const FRAMEWORKS: readonly Framework[] = [
  {
    file: 'fastapi',
    skipped: {
      'POST /upload': NO_FORM_WITH_FILES,
      'GET /tenant': HEADER('x-tenant'),
      'GET /me': LOGIN('HTTPBearer'),
      'GET /moved': /^answers with a redirect \(307\), which is not followed: sell what it leads to$/,
    },
    leftOut: {
      'find_items_get: x-trace': /^is a header: put x-trace under backend\.headers of the configuration to send it$/,
      'read_items__item_id__get: seen': /^goes into the cookie: declare it in: query$/,
      'replace_items__item_id__put: price.anyOf[1]': /^has the pattern .*, which must not use look-around: /,
      'order_orders_post: items.[].price.anyOf[1]': /look-around/,
      'maybe_maybe_post: price.anyOf[1]': /look-around/,
      'category_categories_post: category.children.[].children': RECURSIVE,
      'category_categories_post: at.price.anyOf[1]': /look-around/,
    },
    takes: [
      ['find_items_get', {}, ['GET /items']],
      ['find_items_get', { q: null, since: null }, ['GET /items']],
      [
        'find_items_get',
        { q: 'sock', sort: 'name', tag: ['a', 'b'], since: '2026-01-02', limit: 100 },
        ['GET /items?q=sock&sort=name&tag=a&tag=b&since=2026-01-02&limit=100'],
      ],
      ['find_items_get', { tag: [] }, ['GET /items']],
      ['read_items__item_id__get', { item_id: 3 }, ['GET /items/3']],
      [
        'replace_items__item_id__put',
        { item_id: UUID, dry: true, ...sock, note: null },
        [`PUT /items/${UUID}?dry=true`, { ...sock, note: null }],
      ],
      ['file_files__path__get', { path: 'a.txt' }, ['GET /files/a.txt']],
      ['order_orders_post', order, ['POST /orders', order]],
      ...[{ pay: { kind: 'sepa', iban: 'x' }, labels: { a: 'b' }, gift: true, coupon: null }].map(
        (more) =>
          ['order_orders_post', { ...order, ...more }, ['POST /orders', { ...order, ...more }] as Arriving] as const,
      ),
      ['pay_pay_post', { body: card }, ['POST /pay', card]],
      ['maybe_maybe_post', {}, ['POST /maybe']],
      ['maybe_maybe_post', { body: null }, ['POST /maybe', null]],
      ['maybe_maybe_post', { body: sock }, ['POST /maybe', sock]],
      [
        'category_categories_post',
        { category: { title: 'a', children: [{ title: 'b' }] }, at: null },
        ['POST /categories', { category: { title: 'a', children: [{ title: 'b' }] }, at: null }],
      ],
      ['form_form_post', { name: 'a b&c', age: 7 }, ['POST /form', 'name=a%20b%26c&age=7']],
      ['form_form_post', { name: 'a', age: null }, ['POST /form', 'name=a']],
    ],
    refuses: [
      ['find_items_get', { sort: null }],
      ['find_items_get', { limit: 0 }],
      ['find_items_get', { since: 'soon' }],
      ['read_items__item_id__get', { item_id: 'x' }],
      ['replace_items__item_id__put', { item_id: '3', ...sock }],
      ['replace_items__item_id__put', { item_id: UUID, name: null, price: 1 }],
      ['replace_items__item_id__put', { item_id: UUID, name: 'sock', price: 0 }],
      ['order_orders_post', { ...order, pay: { iban: 'x' } }],
      ['order_orders_post', { ...order, pay: { kind: 'card', iban: 'x' } }],
      ['order_orders_post', { ...order, items: [] }],
      ['order_orders_post', { ...order, at: [1] }],
      ['order_orders_post', { ...order, at: [1, 2, 3] }],
      ['order_orders_post', { ...order, gift: null }],
      ['pay_pay_post', {}],
      ['pay_pay_post', { body: { kind: 'cash' } }],
      ['maybe_maybe_post', { body: { name: 'sock' } }],
      ['category_categories_post', { at: null }],
      ['form_form_post', { age: 7 }],
      ['form_form_post', { name: 'a', age: 1.5 }],
    ],
  },
  {
    file: 'nestjs',
    skipped: {
      'GET /files/{path}':
        /^needs the path parameter path, which is a list or an object in the path: give it type: string$/,
      'GET /tenant': HEADER('X-Tenant'),
      'GET /me': LOGIN('bearer'),
      'POST /upload': NO_FORM_WITH_FILES,
    },
    leftOut: {
      'Shop_order: ship.next.next': RECURSIVE,
      'Shop_named: next.next.next': RECURSIVE,
      'Shop_form: next.next': RECURSIVE,
    },
    takes: [
      ['Items_find', {}, ['GET /items']],
      [
        'Items_find',
        { q: 'a', sort: 'name', tags: ['a', 'b'], limit: 5, since: placed },
        ['GET /items?q=a&sort=name&tags=a&tags=b&limit=5&since=2026-01-02T03%3A04%3A05Z'],
      ],
      ['Items_bySort', { sort: 'name' }, ['GET /items/by/name']],
      ['Items_read', { id: 3 }, ['GET /items/3']],
      ['Items_replace', { id: '3' }, ['PUT /items/3', {}]],
      ['Items_replace', { id: '3', note: null, price: 2 }, ['PUT /items/3', { note: null, price: 2 }]],
      ['Items_drop', { id: '4' }, ['DELETE /items/4']],
      ['Shop_order', nested, ['POST /orders', nested]],
      ...[
        { pay: { kind: 'transfer', iban: 'x' }, ship: { city: 'B', next: { city: 'C' } }, sort: 'name', gift: true },
      ].map(
        (more) => ['Shop_order', { ...nested, ...more }, ['POST /orders', { ...nested, ...more }] as Arriving] as const,
      ),
      ['Shop_many', { body: [item] }, ['POST /orders/many', [item]]],
      ['Shop_named', { name: 'a', city: 'B' }, ['POST /named', { name: 'a', city: 'B' }]],
      ['Shop_list', { ids: [1, 2], sorts: ['name', 'price'] }, ['GET /list?ids=1,2&sorts=name&sorts=price']],
      ['Shop_version', {}, ['GET /version, version 2']],
      ['Shop_form', { city: 'B' }, ['POST /form', 'city=B']],
    ],
    refuses: [
      ['Items_find', { limit: 0 }],
      ['Items_bySort', { sort: 'size' }],
      ['Items_read', { id: 'x' }],
      ['Items_replace', { id: '3', more: 1 }],
      ['Shop_order', { ...nested, pay: { kind: 'transfer', number: '1234' } }],
      ['Shop_order', { ...nested, items: [] }],
      ['Shop_order', { ...nested, ship: { town: 'x' } }],
      ['Shop_list', { ids: [1] }],
      ['Shop_form', {}],
    ],
  },
];

/** The section that the command prints, and its report. */
async function importing(file: string): Promise<{ readonly resources: ConfigObject; readonly report: Report }> {
  const out: string[] = [];
  const errors: string[] = [];
  await runImport(
    { source: join(FIXTURES, `${file}.json`), json: true },
    { stdout: { write: (text) => out.push(text) }, stderr: { write: (text) => errors.push(text) } },
  );
  return { resources: parse(out.join('')).resources, report: JSON.parse(errors.join('')) };
}

interface Report {
  readonly resources: readonly string[];
  readonly skipped: readonly { readonly operation: string; readonly reason: string }[];
  readonly narrowed: readonly { readonly resource: string; readonly path: string; readonly reason: string }[];
}

for (const { file, skipped, leftOut, takes, refuses } of FRAMEWORKS)
  describe(`what ${file} writes of a service`, () => {
    const arrived: Arriving[] = [];
    let backend: HttpServer;
    let gateway: TestGateway;
    let report: Report;
    before(async () => {
      const made = await importing(file);
      report = made.report;
      backend = await serveHttp(({ request, response, body }) => {
        const text = body.toString();
        const version = request.headers['x-version'];
        const line = `${request.method} ${request.url}${version === undefined ? '' : `, version ${version}`}`;
        const isJson = request.headers['content-type']?.startsWith('application/json') === true;
        arrived.push(text === '' ? [line] : [line, isJson ? JSON.parse(text) : text]);
        answerJson(response, 200, {});
      });
      const others = Object.fromEntries(Object.keys(sampleResources('')).map((id) => [id, undefined]));
      gateway = await openGateway({
        ...{ backendUrl: backend.url, chain: NO_CHAIN, facilitator: { mode: 'local' } },
        overrides: { payments: undefined, resources: { ...others, ...made.resources } },
      });
    });
    after(async () => {
      await gateway.close();
      await backend.stop();
    });

    it('is sold but for what has a reason, and says what is not taken', () => {
      const reasons = Object.fromEntries(report.skipped.map(({ operation, reason }) => [operation, reason]));
      assert.deepEqual(Object.keys(reasons).toSorted(), Object.keys(skipped).toSorted());
      for (const [operation, reason] of Object.entries(skipped)) assert.match(reasons[operation] ?? '', reason);
      const not = Object.fromEntries(
        report.narrowed.map(({ resource, path, reason }) => [`${resource}: ${path}`, reason]),
      );
      assert.deepEqual(Object.keys(not).toSorted(), Object.keys(leftOut).toSorted());
      for (const [place, reason] of Object.entries(leftOut)) assert.match(not[place] ?? '', reason);
    });

    it('is published with the schemas that are kept beside the document', async () => {
      const response = await fetch(`${gateway.url}/api/resources`);
      const { resources } = (await response.json()) as { resources: { id: string; inputSchema?: JsonObject }[] };
      const published = Object.fromEntries(resources.map(({ id, inputSchema }) => [id, inputSchema]));
      assert.deepEqual(Object.keys(published), report.resources);
      const kept = readFileSync(join(FIXTURES, `${file}.published.yaml`), 'utf8');
      assert.equal(stringify(published, { aliasDuplicateObjects: false, lineWidth: 120 }), kept);
    });

    for (const [index, [id, input, arriving]] of takes.entries())
      it(`takes ${id} ${index}: ${arriving[0]}`, async () => {
        arrived.length = 0;
        const response = await gateway.invoke(id, input);
        assert.equal(response.status, 200, await response.text());
        assert.deepEqual(arrived, [arriving]);
      });

    for (const [id, input] of refuses)
      it(`refuses ${id} ${JSON.stringify(input).slice(0, 60)}`, async () => {
        arrived.length = 0;
        const response = await gateway.invoke(id, input);
        const { code } = (await response.json()) as { code: string };
        assert.deepEqual([response.status, code, arrived], [400, 'INPUT_INVALID', []]);
      });
  });
