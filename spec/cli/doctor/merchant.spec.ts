import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { checkBackend } from '../../../src/cli/doctor/backend.ts';
import { runChecks } from '../../../src/cli/doctor/check.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { podAddresses } from '../../../src/sidecar/exposure.ts';
import { answerJson, serveHttp } from '../../support/http-server.ts';
import { type CheckedWorld, openCheckedWorld } from './checked-world.ts';

const ends = new AsyncDisposableStack();
let world: CheckedWorld;
let healthy: Awaited<ReturnType<CheckedWorld['examined']>>['statuses'];
before(async () => {
  world = await openCheckedWorld(ends);
  healthy = (await world.examined()).statuses;
});
after(() => ends.disposeAsync());

const but = (changed: Readonly<Record<string, string>>) => ({ ...healthy, ...changed });

describe('the checks of the merchant', () => {
  it('one that is down fails, and its exposure cannot be looked at', async () => {
    const { statuses, text } = await world.examined({ backend: { baseUrl: 'http://127.0.0.1:1' } });
    assert.deepEqual(statuses, but({ backend: 'FAIL', 'backend exposure': 'SKIP', 'sold paths': 'SKIP' }));
    assert.match(text, /^FAIL backend: http:\/\/127\.0\.0\.1:1 does not answer: nothing listens there; start it/m);
  });

  it('its probe is requested, with the configured headers', async () => {
    const asked: string[] = [];
    let status = 404;
    const merchant = ends.adopt(
      await serveHttp(({ request, response }) => {
        asked.push(`${request.method} ${request.url} ${request.headers['x-internal']}`);
        answerJson(response, status, {});
      }),
      ({ stop }) => stop(),
    );
    const backend = { baseUrl: `${merchant.url}/shop`, probe: { path: '/alive' }, headers: { 'x-internal': 'yes' } };
    const answering = await world.examined({ backend });
    assert.deepEqual(answering.statuses, but({ 'sold paths': 'WARN' }));
    assert.match(answering.text, /^PASS backend: answers \/shop\/alive with 404/m);
    assert.deepEqual(asked.toSorted(), ['GET /shop/alive yes', 'GET /shop/cities yes']);
    status = 503;
    const broken = await world.examined({ backend });
    assert.deepEqual(broken.statuses, but({ backend: 'WARN', 'sold paths': 'WARN' }));
    assert.match(broken.text, /answers its probe \/shop\/alive with 503; look at the service/);
  });

  it('a sold path that it does not have is named, with what it answers', async () => {
    let status = 404;
    const merchant = ends.adopt(await serveHttp(({ response }) => answerJson(response, status, {})), ({ stop }) =>
      stop(),
    );
    const examined = () => world.examined({ backend: { baseUrl: merchant.url } });
    const absent = await examined();
    assert.equal(absent.statuses['sold paths'], 'WARN');
    assert.match(
      absent.text,
      /^WARN sold paths: GET \/cities of your service answers 404; correct resources\.cities, or its example input$/m,
    );
    status = 200;
    assert.deepEqual((await examined()).statuses, healthy);
  });

  it('second names are looked at where something passes', async () => {
    assert.ok(!('second names' in healthy));
    const { statuses } = await world.examined({ backend: { passthrough: { enabled: true } } });
    assert.equal(statuses['second names'], 'PASS');
  });

  const [own] = podAddresses().filter((address) => !address.includes(':'));
  it('one that listens on every address can be called past the gateway', { skip: own === undefined }, async () => {
    const open = createServer((_request, response) => response.end());
    ends.defer(() => void open.close());
    open.listen(0, '0.0.0.0');
    await once(open, 'listening');
    const { port } = open.address() as AddressInfo;
    const { statuses, text } = await world.examined({ backend: { baseUrl: `http://127.0.0.1:${port}` } });
    assert.deepEqual(statuses, but({ 'backend exposure': 'WARN' }));
    assert.match(text, /it can be called past the gateway, without paying, at .*; let it listen on 127\.0\.0\.1 only/);
    const { backend } = loadConfig({ path: await world.configured(), env: {} });
    const elsewhere = await runChecks(checkBackend({ ...backend, origin: `http://${own}:${port}` }), () => undefined);
    assert.deepEqual(
      elsewhere.map(({ check, status }) => `${status} ${check}`),
      ['PASS backend', 'SKIP backend exposure'],
    );
  });
});
