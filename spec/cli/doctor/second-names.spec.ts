import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runChecks } from '../../../src/cli/doctor/check.ts';
import { checkSecondNames } from '../../../src/cli/doctor/second-names.ts';
import { compileCatalogue } from '../../../src/resources/catalogue.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { type Changes, changed, load } from '../../config/document/document.ts';
import { answerJson, type HttpServer, serveHttp } from '../../support/http-server.ts';
import { acg } from '../acg.ts';

const ends = new AsyncDisposableStack();
/** What the merchant serves below its base URL; it answers everything else with `rest`. */
const PAGES: Readonly<Record<string, unknown>> = {
  '/orders': { orders: 1 },
  '/orders.json': { orders: 1 },
  '/orders/all': { orders: 1 },
  '/orders/help': { help: 1 },
  '/r/Berlin': { city: 'Berlin' },
  '/reports/Berlin': { city: 'Berlin' },
  '/en/reports/Berlin': { city: 'Berlin' },
  '/?path=%2Forders': { orders: 1 },
};
let rest: unknown;
let merchant: HttpServer;
let asked: string[] = [];
before(async () => {
  merchant = await serveHttp(({ request: { method, url = '' }, response }) => {
    asked.push(`${method} ${url}`);
    const page = PAGES[url.replace(/^\/shop/, '')] ?? rest;
    answerJson(response, page === undefined ? 404 : 200, page ?? {});
  });
  ends.defer(() => merchant.stop());
});
after(() => ends.disposeAsync());

function sold(passthrough: Changes | undefined, more: Changes = {}): Changes {
  return {
    'backend.baseUrl': merchant.url,
    'backend.passthrough': passthrough && { enabled: true, ...passthrough },
    'resources.orders': {
      name: 'Orders',
      backend: { method: 'GET', path: '/orders' },
      pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
    },
    'resources.report.inputSchema': {
      type: 'object',
      properties: { city: { type: 'string', enum: ['Berlin'] } },
      required: ['city'],
    },
    ...more,
  };
}

async function found(changes: Changes): Promise<readonly string[]> {
  asked = [];
  const config = load(changes);
  const checks = checkSecondNames(config, compileCatalogue(config));
  const findings = await runChecks(checks, () => undefined);
  return findings.map(({ status, message }) => `${status} ${message}`);
}

const served = (setting: string, name: string): string =>
  `FAIL ${setting} is also served at ${name}, which passes without payment or mandate`;

describe('the check of second names', () => {
  it('asks nothing where nothing passes, and where no name of what is sold does', async () => {
    assert.deepEqual(await found(sold(undefined)), []);
    assert.deepEqual(await found(sold({})), ['PASS 0 known second names pass, none to what is sold']);
    assert.deepEqual(asked, []);
  });

  it('names what is sold and passes because allow or include names it', async () => {
    const allow = ['/orders.json', '/orders/help', '/r/{city}'];
    assert.deepEqual(await found(sold({ allow })), [
      served('resources.report', '/r/Berlin'),
      served('resources.orders', '/orders.json'),
    ]);
    assert.ok(asked.every((line) => line.startsWith('GET /')));
    assert.deepEqual(await found(sold({ include: ['/orders/all', '/blog'] })), [
      served('resources.orders', '/orders/all'),
    ]);
    const front = await found(sold({ allow: ['/'] }));
    assert.ok(front.includes(served('resources.orders', '/?path=%2Forders')), front.join('\n'));
    assert.ok(front.includes(served('resources.report', '/en/reports/Berlin')), front.join('\n'));
  });

  it('asks below the base URL', async () => {
    const below = { 'backend.baseUrl': `${merchant.url}/shop` };
    assert.deepEqual(await found(sold({ allow: ['/orders/all'] }, below)), [served('resources.orders', '/orders/all')]);
    assert.ok(asked.every((line) => line.startsWith('GET /shop/')));
  });

  it('requests nothing that is sold where no name is answered, nor what is no GET', async () => {
    const [line] = await found(sold({ allow: ['/nothing'] }));
    assert.match(line ?? '', /^PASS [1-9]\d* known second names pass, none to what is sold$/);
    assert.deepEqual(
      asked.filter((target) => target === 'GET /orders' || target === 'GET /reports/Berlin'),
      [],
    );
    await found(sold({ allow: ['/orders.json'] }, { 'resources.orders.backend.method': 'DELETE' }));
    assert.ok(!asked.includes('GET /orders.json/orders') && !asked.includes('GET /orders'));
  });

  it('finds nothing at a merchant that answers everything alike', async () => {
    rest = PAGES['/orders'];
    try {
      const [line, ...more] = await found(sold({ allow: ['/orders.json'] }));
      assert.match(line ?? '', /^PASS /);
      assert.deepEqual(more, []);
    } finally {
      rest = undefined;
    }
  });

  it('says what it cannot compare', async () => {
    const free = { 'resources.report.inputSchema.properties': { city: { type: 'string' } } };
    assert.deepEqual(await found(sold({ allow: ['/r/{city}'] }, free)), [
      'SKIP resources.report has no example input to compare answers of; add bazaar.example',
    ]);
    const gone = { 'resources.orders.backend.path': '/gone', 'resources.report': undefined };
    assert.deepEqual(await found(sold({ allow: ['/orders/help'] }, gone)), [
      'SKIP 1 answers could not be compared, such as that of /gone',
    ]);
  });

  it('is part of acg validate --probe, which ends with 1', async () => {
    const folder = await temporaryDirectory(ends, 'acg-validate-');
    const written = (passthrough: Changes) =>
      writeFileSync(join(folder, 'config.yaml'), JSON.stringify(changed(sold(passthrough))));
    written({ allow: ['/orders.json'] });
    const leaking = await acg(folder, ['validate', '--probe']);
    assert.equal(leaking.code, 1);
    assert.match(leaking.lines.join('\n'), /^FAIL second names: resources\.orders .*; remove what lets it pass/m);
    written({});
    const tight = await acg(folder, ['validate', '--probe']);
    assert.equal(tight.code, 0);
    assert.match(tight.lines.join('\n'), /^PASS backend: .*\n.*\nPASS sold paths: .*\nPASS second names: /m);
  });
});
