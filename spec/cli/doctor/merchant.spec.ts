import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { checkBackend } from '../../../src/cli/doctor/backend.ts';
import { checkCertificate } from '../../../src/cli/doctor/certificate.ts';
import { type Finding, runChecks } from '../../../src/cli/doctor/check.ts';
import { checkSecondNames } from '../../../src/cli/doctor/second-names.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { compileCatalogue } from '../../../src/resources/catalogue.ts';
import { podAddresses } from '../../../src/sidecar/exposure.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { type Changes, changed, load } from '../../config/document/document.ts';
import { authorityExtension, makeCertificate, namesExtension } from '../../support/certificates.ts';
import { answerJson, type HttpServer, serveHttp } from '../../support/http-server.ts';
import { acg } from '../acg.ts';
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

const DAY_MS = 86_400_000;
const [own = ''] = podAddresses().filter((address) => !address.includes(':'));
const skip = own === '' ? `${hostname()} has no address but loopback` : false;
const issuer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const authority = makeCertificate(
  { issuer: 'doctor', subject: 'doctor', publicKey: issuer.publicKey, extensions: [authorityExtension()] },
  issuer.privateKey,
);

/** A server at this machine's own address; its URL. */
async function serving(validDays: number, name: string | Buffer = addressBytes(own)): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const until = Date.now() + validDays * DAY_MS;
  const statement = { issuer: 'doctor', subject: 'shop', publicKey, extensions: [namesExtension(name)] };
  const cert = makeCertificate({ ...statement, from: Date.now() - 30 * DAY_MS, until }, issuer.privateKey);
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const server = createTlsServer({ cert, key }, (_request, response) => response.end());
  ends.defer(() => void server.close());
  server.listen(0, own);
  await once(server, 'listening');
  return `https://${own}:${(server.address() as AddressInfo).port}`;
}

function addressBytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number));
}

async function seenAt(url: string, ca?: string): Promise<Finding> {
  const [finding] = await runChecks([checkCertificate(url, ca)], () => undefined);
  assert.ok(finding !== undefined);
  return finding;
}

describe('the check of the certificate', { skip }, () => {
  it('is for https beyond this machine', async () => {
    assert.equal((await seenAt('https://127.0.0.1:1')).status, 'SKIP');
    assert.equal((await seenAt('http://shop.example')).status, 'SKIP');
  });

  it('says how long it is valid, and warns two weeks before the end', async () => {
    const long = await seenAt(await serving(60.5), authority);
    assert.deepEqual([long.status, /is valid for 60 days$/.test(long.message)], ['PASS', true]);
    const short = await seenAt(await serving(10.5), authority);
    assert.deepEqual([short.status, / ends in 10 days, /.test(short.message)], ['WARN', true]);
  });

  it('fails on one that has ended, is of an unknown authority, or of another name', async () => {
    for (const [url, ca, says] of [
      [await serving(-1), authority, /certificate has expired|CERT_HAS_EXPIRED/],
      [await serving(60), undefined, /unable to verify|UNABLE_TO_VERIFY/],
      [await serving(60, 'other.example'), authority, /does not match|ERR_TLS_CERT_ALTNAME_INVALID/],
    ] as const) {
      const { status, message, remedy } = await seenAt(url, ca);
      assert.deepEqual([status, remedy], ['FAIL', 'renew it where TLS ends, before the gateway']);
      assert.match(message, says);
    }
  });

  it('fails where no certificate is shown', async () => {
    const { status, message } = await seenAt(`https://${own}:1`);
    assert.deepEqual([status, message], ['FAIL', `https://${own}:1 does not answer: nothing listens there`]);
  });

  describe('in acg doctor', () => {
    let world: CheckedWorld;
    before(async () => {
      world = await openCheckedWorld(ends);
      await writeFile(join(world.folder, 'ca.pem'), authority);
    });

    it('flips alone', async () => {
      const statusesWith = async (publicBaseUrl: string) => {
        const path = await world.configured({ merchant: { publicBaseUrl } });
        const env = { NODE_EXTRA_CA_CERTS: join(world.folder, 'ca.pem') };
        const { lines } = await acg(world.folder, ['doctor', '--config', path], env);
        const { findings } = JSON.parse(lines.join('\n'));
        return Object.fromEntries(findings.map(({ check, status }: Finding & { check: string }) => [check, status]));
      };
      const [valid, expired] = await Promise.all([statusesWith(await serving(60)), statusesWith(await serving(-1))]);
      assert.equal(valid['certificate'], 'PASS');
      assert.deepEqual(expired, { ...valid, certificate: 'FAIL' });
      assert.deepEqual(
        Object.values(valid).filter((status) => status === 'FAIL' || status === 'WARN'),
        [],
      );
    });
  });
});
