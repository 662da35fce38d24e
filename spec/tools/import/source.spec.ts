import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { readDocuments } from '../../../tools/import/source.ts';
import { importFiles, resourceOf } from './openapi.ts';

const folder = mkdtempSync(join(tmpdir(), 'acg-import-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const EMPTY = '{ "openapi": "3.1.0", "paths": {} }';

async function served(listener: RequestListener, use: (url: string) => Promise<unknown>): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('a document from a file', () => {
  it('is JSON or YAML, whatever its name', async () => {
    const expected = { openapi: '3.1.0', paths: {} };
    for (const [name, text] of [
      ['a.json', EMPTY],
      ['b.yaml', 'openapi: 3.1.0\npaths: {}\n'],
      ['c.txt', '{ openapi: 3.1.0, paths: {} }'],
    ] as const) {
      const { root, files } = await readDocuments(file(name, text));
      assert.deepEqual(files.get(root), expected);
    }
  });

  it('may merge and repeat in YAML', async () => {
    const text =
      'openapi: 3.1.0\nx-base: &base { type: string }\npaths:\n  /x: { a: { <<: *base, minLength: 1 }, b: *base }\n';
    const { root, files } = await readDocuments(file('alias.yaml', text));
    const { paths } = files.get(root) as { readonly paths: object };
    assert.deepEqual(paths, { '/x': { a: { type: 'string', minLength: 1 }, b: { type: 'string' } } });
  });

  it('brings the files below its folder that it refers to, and those that they refer to', async () => {
    const path = file('api/it.yaml', 'openapi: 3.1.0\npaths: { /x: { $ref: "parts/x.yaml#/item" } }\n');
    file('api/parts/x.yaml', 'item: { get: { parameters: [{ $ref: "../common/q%20q.json#/q" }] } }\n');
    file('api/common/q q.json', '{ "q": { "name": "q", "in": "query", "schema": { "type": "string" } } }');
    const { root, files } = await readDocuments(path);
    assert.deepEqual([...files.keys()], ['it.yaml', 'parts/x.yaml', 'common/q q.json']);
    const result = importFiles(Object.fromEntries([...files].map(([name, value]) => [name, value as object])));
    assert.equal(root, 'it.yaml');
    assert.deepEqual(resourceOf(result).inputSchema?.['properties'], { q: { type: 'string' } });
  });

  it('brings no file outside its folder, by no spelling, and nothing from a network', async () => {
    file('secret.json', '{ "type": "string" }');
    mkdirSync(join(folder, 'shop'), { recursive: true });
    symlinkSync(join(folder, 'secret.json'), join(folder, 'shop/link.json'));
    symlinkSync(folder, join(folder, 'shop/up'));
    let asked = 0;
    await served(
      (_req, res) => {
        asked += 1;
        res.end('{}');
      },
      async (url) => {
        const references = [
          ...['../secret.json', 'x/../../secret.json', '%2e%2e/secret.json', '..%2fsecret.json', '..\\secret.json'],
          ...[join(folder, 'secret.json'), `file://${folder}/secret.json`, 'link.json', 'up/secret.json', '.'],
          ...[`${url}/a.json`, url.replace('http:', ''), 'gone.json', '%zz.json'],
        ];
        const paths = Object.fromEntries(references.map((reference, at) => [`/${at}`, { $ref: reference }]));
        const path = file('shop/it.json', JSON.stringify({ openapi: '3.1.0', paths }));
        const { files } = await readDocuments(path);
        assert.deepEqual([...files.keys()], ['it.json']);
        const { skipped } = importFiles({ 'it.json': files.get('it.json') as object });
        assert.equal(skipped.length, references.length);
      },
    );
    assert.equal(asked, 0);
  });
});

describe('a document from a URL', () => {
  it('is read over http on loopback, and what it refers to is not', async () => {
    const asked: (string | undefined)[] = [];
    await served(
      (req, res) => {
        asked.push(req.url);
        res.end('{ "openapi": "3.1.0", "paths": { "/x": { "$ref": "x.json" } } }');
      },
      async (url) => {
        const { root, files } = await readDocuments(`${url}/v1/openapi.json`);
        assert.deepEqual([root, [...files.keys()]], ['openapi.json', ['openapi.json']]);
      },
    );
    assert.deepEqual(asked, ['/v1/openapi.json']);
  });

  for (const [title, status, headers, message] of [
    ['a redirect', 302, { location: 'https://example.com/a' }, /leads to https:\/\/example\.com\/a: name that one/],
    ['an error', 404, {}, /answers 404/],
  ] as const)
    it(`is refused for ${title}`, () =>
      served(
        (_req, res) => res.writeHead(status, headers).end(),
        (url) => assert.rejects(readDocuments(url), message),
      ));

  it('is refused beyond its greatest size, before all of it is there', () =>
    served(
      (_req, res) => {
        const part = Buffer.alloc(1_048_576, ' ');
        const more = (): void => {
          while (res.write(part));
          res.once('drain', more);
        };
        more();
      },
      (url) => assert.rejects(readDocuments(url), /is larger than 67108864 bytes/),
    ));

  for (const url of [
    'http://example.com/a.json',
    'http://10.0.0.1/a',
    'ftp://example.com/a',
    'file:///etc/passwd',
    'http://127.0.0.1.example.com/',
  ])
    it(`is refused at ${url}`, () => assert.rejects(readDocuments(url), /is neither https nor http on loopback/));

  it('is refused where nothing answers', () =>
    assert.rejects(
      readDocuments('http://127.0.0.1:1/a'),
      /^UnavailableError: http:\/\/127\.0\.0\.1:1\/a cannot be read/,
    ));
});

const HOSTILE: readonly (readonly [string, () => string, RegExp])[] = [
  ['a file that is not there', () => join(folder, 'gone.json'), /^ENOENT: .*gone\.json/],
  ['a folder', () => folder, /is not a regular file/],
  [
    '100 MB',
    () => {
      const path = file('large.json', EMPTY);
      truncateSync(path, 100_000_000);
      return path;
    },
    /is larger than 67108864 bytes/,
  ],
  ['bytes that are no text', () => file('bytes.json', ''), /is no YAML|is no object|is not UTF-8/],
  ['JSON nested 100,000 deep', () => file('deep.json', '{"a":'.repeat(100_000)), /is no (?:JSON|YAML)/],
  [
    'closed JSON nested 1,000 deep',
    () => file('deep2.json', `${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`),
    /is nested deeper than 500 levels/,
  ],
  ['YAML nested 10,000 deep', () => file('deep.yaml', '['.repeat(10_000)), /is no YAML/],
  [
    'aliases that expand to gigabytes',
    () => {
      const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
      for (let at = 1; at < 12; at += 1)
        lines.push(
          `a${at}: &a${at} [${Array(10)
            .fill(`*a${at - 1}`)
            .join(', ')}]`,
        );
      return file('bomb.yaml', lines.join('\n'));
    },
    /is no YAML: Excessive alias count/,
  ],
  ['an alias of itself', () => file('self.yaml', 'a: &a [*a]\n'), /is nested deeper than 500 levels/],
  ['two documents', () => file('two.yaml', 'a: 1\n---\nb: 2\n'), /is no YAML/],
];

describe('a hostile document', () => {
  for (const [title, path, message] of HOSTILE)
    it(`is refused in one line: ${title}`, () =>
      assert.rejects(
        async () => {
          const { root, files } = await readDocuments(path());
          importFiles({ it: files.get(root) as object });
        },
        (error: Error) => message.test(error.message) && !error.message.includes('\n'),
      ));

  it('has names of prototypes, and changes none', () => {
    const text = `{ "openapi": "3.1.0", "paths": { "/x": { "get": { "operationId": "constructor", "parameters": [
      { "$ref": "#/components/parameters/__proto__" }, { "$ref": "#/components/toString" } ] } },
      "/y": { "get": { "operationId": "__proto__", "parameters": [{ "$ref": "#/components/parameters/__proto__" }] } },
      "/z": { "get": { "operationId": "toString", "responses": { "200": { "$ref": "#/constructor" } } } } },
      "components": { "parameters": { "__proto__": { "name": "a", "in": "query", "schema": { "polluted": 1 } } } } }`;
    const { resources, skipped } = importFiles({ it: JSON.parse(text) });
    assert.deepEqual(Object.keys(resources), ['proto', 'toString']);
    assert.deepEqual(
      skipped.map(({ operation }) => operation),
      ['GET /x'],
    );
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });

  it('has forty schemas that all refer to all, and ends soon', () => {
    const names = Array.from({ length: 40 }, (_, at) => `S${at}`);
    const properties = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/schemas/${name}` }]));
    const schemas = Object.fromEntries(names.map((name) => [name, { type: 'object', properties }]));
    const content = { 'application/json': { schema: { $ref: '#/components/schemas/S0' } } };
    const { resources } = importFiles({
      it: { openapi: '3.1.0', paths: { '/x': { post: { requestBody: { content } } } }, components: { schemas } },
    });
    assert.deepEqual(Object.keys(resources), ['post_x']);
  });

  it('has a schema nested deeper than the gateway reads', () => {
    let schema: object = { type: 'string' };
    for (let at = 0; at < 200; at += 1) schema = { type: 'array', items: schema };
    const paths = { '/x': { post: { requestBody: { content: { 'application/json': { schema } } } } } };
    const { skipped } = importFiles({ it: { openapi: '3.1.0', paths } });
    assert.match(skipped[0]?.reason ?? '', /is nested deeper than/);
  });
});
