import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { answerJson, type HttpServer, serveHttp } from '../support/http-server.ts';
import { devWorlds } from './dev/dev-world.ts';

/** What a merchant adds to what `acg init` writes. */
const THIRD_ROUTE = `  order:
    name: Order
    inputSchema:
      type: object
      properties: { sku: { type: string }, quantity: { type: integer, minimum: 1 } }
      required: [sku, quantity]
    backend: { method: POST, path: /orders }
    pricing: { type: fixed, amount: "1.5", currency: USDC }
    expose: [http, mcp, a2a]
`;

describe("a merchant's own service, sold from another folder by init, dev and pay", { timeout: 240_000 }, () => {
  const worlds = devWorlds();
  let service: HttpServer;
  let calls: string[];
  before(async () => {
    calls = [];
    service = await serveHttp(({ request, response, body }) => {
      calls.push(`${request.method} ${request.url} ${body}`);
      if (request.url === '/status') answerJson(response, 200, { open: true });
      else if (request.url?.startsWith('/reports/'))
        answerJson(response, 200, { city: request.url.slice('/reports/'.length) });
      else if (request.method === 'GET') answerJson(response, 404, {});
      else answerJson(response, 201, { ordered: JSON.parse(body.toString()) });
    });
  });
  after(() => service.stop());

  it('all three routes answer, the priced ones after a payment', async () => {
    const sold = ['--sell', 'GET /reports/{city}', '--sell', 'GET /status'];
    assert.equal((await worlds.acg(['init', '--merchant', 'Reports', '--backend', service.url, ...sold])).code, 0);
    const config = join(worlds.folder, 'config.yaml');
    writeFileSync(config, `${readFileSync(config, 'utf8')}${THIRD_ROUTE}`);
    const { baseUrl, printed } = await worlds.introduced();
    assert.match(printed(), /Reports, in a local world\n/);
    // Those were looked at, with GET.
    calls.length = 0;

    const bought = async (...args: readonly string[]): Promise<unknown> => {
      const { code, output, errors } = await worlds.acg(['pay', ...args, '--yes']);
      assert.equal(code, 0, errors);
      return JSON.parse(output.toString());
    };
    assert.deepEqual(await bought(baseUrl, '--resource', 'status'), { open: true });
    assert.deepEqual(await bought(`${baseUrl}/reports/Berlin`), { city: 'Berlin' });
    const order = { sku: 'A-1', quantity: 2 };
    const wanted = [baseUrl, JSON.stringify(order), '--resource', 'order', '--max', '1.5'];
    for (const over of [[], ['--mcp'], ['--a2a']])
      assert.deepEqual(await bought(...wanted, ...over), { ordered: order });
    assert.deepEqual(calls, [
      'GET /status ',
      'GET /reports/Berlin ',
      ...Array(3).fill(`POST /orders ${JSON.stringify(order)}`),
    ]);
  });
});
