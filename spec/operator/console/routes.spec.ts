import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CONSOLE_FILES } from '../../../src/operator/console/routes.ts';
import { type Chain, startChain } from '../../support/chain.ts';
import { openGateway, type TestGateway } from '../../support/gateway.ts';
import { startSampleBackend } from '../../support/sample-backend.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const sources = globSync('src/operator/console/*.js');

describe('the console of a gateway', () => {
  let chain: Chain;
  let open: TestGateway;
  let closed: TestGateway;
  let stop: () => Promise<void>;
  before(async () => {
    chain = await startChain();
    const backend = await startSampleBackend();
    const parts = { chain, backendUrl: backend.url, facilitator: { mode: 'local' } } as const;
    open = await openGateway(parts);
    closed = await openGateway({ ...parts, overrides: { server: { adminToken: undefined } } });
    stop = async () => {
      await Promise.all([open.close(), closed.close()]);
      await Promise.all([chain.stop(), backend.stop()]);
    };
  });
  after(() => stop());

  /** Everything of an answer but what no two answers share. */
  const seen = async (response: Response) => {
    const id = response.headers.get('x-request-id') ?? '';
    const headers = [...response.headers].filter(([name]) => !['date', 'x-request-id'].includes(name));
    return [response.status, headers, (await response.text()).replaceAll(id, '')];
  };

  for (const method of METHODS)
    it(`without an operator token ${method} is answered as on any route that is not there`, async () => {
      for (const { path } of CONSOLE_FILES) {
        const answer = await fetch(`${closed.url}${path}`, { method });
        assert.equal(answer.status, 404);
        assert.deepEqual(await seen(answer), await seen(await fetch(`${closed.url}/nowhere`, { method })));
      }
    });

  for (const method of METHODS.slice(2))
    it(`${method} is 405 and names what is allowed`, async () => {
      for (const path of ['/console', '/console/console.js']) {
        const answer = await fetch(`${open.url}${path}`, { method });
        assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD']);
        assert.equal(((await answer.json()) as { code: string }).code, 'METHOD_NOT_ALLOWED');
      }
    });

  for (const path of [
    '/console/',
    '/console%2Fconsole.js',
    '/Console',
    '/console/files.ts',
    '/console/tsconfig.json',
    '/console/../main.ts',
  ])
    it(`${path} is not there`, async () => {
      const answer = await fetch(`${open.url}${path}`);
      await answer.arrayBuffer();
      assert.equal(answer.status, 404);
    });

  for (const { path, mediaType } of CONSOLE_FILES)
    it(`${path} is ${mediaType}, under the strict policy, with a strong ETag and 304`, async () => {
      const answer = await fetch(`${open.url}${path}`);
      const body = await answer.text();
      const policy = answer.headers.get('content-security-policy') ?? '';
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, mediaType]);
      for (const rule of [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
      ])
        assert.ok(policy.split('; ').includes(rule), rule);
      assert.doesNotMatch(policy, /unsafe|\*|http/);
      assert.deepEqual(
        ['x-content-type-options', 'referrer-policy', 'cache-control'].map((name) => answer.headers.get(name)),
        ['nosniff', 'no-referrer', 'no-cache'],
      );
      const etag = answer.headers.get('etag') ?? '';
      assert.match(etag, /^"[\w-]{27}"$/);
      const again = await fetch(`${open.url}${path}`, { headers: { 'if-none-match': etag } });
      assert.deepEqual([again.status, await again.text()], [304, '']);
      const head = await fetch(`${open.url}${path}`, { method: 'HEAD' });
      assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(Buffer.byteLength(body))]);
      assert.equal(await head.text(), '');
    });

  it('loads although the browser names an unknown origin, and gives that origin nothing', async () => {
    const answer = await fetch(`${open.url}/console/console.js`, { headers: { origin: 'http://localhost:9999' } });
    await answer.arrayBuffer();
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
    assert.equal(answer.headers.get('cross-origin-resource-policy'), 'same-origin');
  });
});

describe('the files of the console', () => {
  const served = new Set(CONSOLE_FILES.map(({ path }) => basename(path)));
  const page = readFileSync('src/operator/console/console.html', 'utf8');

  it('are all served', () => {
    assert.ok(sources.length > 10);
    for (const file of globSync('src/operator/console/*.{js,css,svg}')) assert.ok(served.has(basename(file)), file);
  });

  it('of the page are all there, and none comes from elsewhere', () => {
    const wanted = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map((match) => match[1] ?? '');
    assert.ok(wanted.length > 10);
    for (const name of wanted) assert.ok(served.has(name.replace(/^console\//, '')), name);
  });

  for (const file of sources) {
    const source = readFileSync(file, 'utf8');
    it(`${file} imports its neighbours only, and is preloaded`, () => {
      for (const [, name = ''] of source.matchAll(/from '([^']+)'/g)) {
        assert.match(name, /^\.\/[\w-]+\.js$/);
        assert.ok(page.includes(`href="console/${name.slice(2)}"`), name);
      }
    });

    it(`${file} names no file beside itself, which in the bundle is not there`, () =>
      assert.doesNotMatch(source, /import\.meta/));

    it(`${file} never makes markup, code or a stored value of a text`, () => {
      assert.doesNotMatch(
        source,
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|\.style\b|DOMParser|createContextualFragment|localStorage|sessionStorage|indexedDB|document\.cookie|location\./,
      );
    });
  }
});
