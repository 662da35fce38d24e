import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Response } from 'express';
import { checkHost, checkOrigin } from '../../../src/server/http/origin.ts';
import { type BareListener, openBareListener } from './bare-listener.ts';
import { exchange, head } from './raw.ts';

const get = (url: string, lines: readonly string[], target = '/'): Promise<string> =>
  exchange(url, [head([`GET ${target} HTTP/1.1`, ...lines, 'Connection: close'])]);

describe('origins of browsers', () => {
  let listener: BareListener;
  before(async () => {
    const listed = ['https://console.example', 'https://dashboard.example:8443', 'http://[::1]:5173'];
    listener = await openBareListener([checkOrigin(listed, 'https://shop.example/base')]);
  });
  after(() => listener.close());

  /** Attack O5: the serialised origin is compared as a whole. `named`: it gets CORS headers. */
  const ORIGINS: readonly (readonly [origin: string, verdict: 'named' | 'own' | 'refused'])[] = [
    ['https://console.example', 'named'],
    ['HTTPS://Console.Example', 'named'],
    ['https://dashboard.example:8443', 'named'],
    ['http://[::1]:5173', 'named'],
    ['https://shop.example', 'own'],
    ['null', 'refused'],
    ['', 'refused'],
    ['*', 'refused'],
    ['http://console.example', 'refused'],
    ['https://console.example:443', 'refused'],
    ['https://console.example:8443', 'refused'],
    ['https://dashboard.example', 'refused'],
    ['https://console.example/', 'refused'],
    ['https://console.example.', 'refused'],
    ['https://console.example.evil.test', 'refused'],
    ['https://evil-console.example', 'refused'],
    ['https://evil.test/https://console.example', 'refused'],
    ['https://user@console.example', 'refused'],
    ['https://console.example@evil.test', 'refused'],
    ['https://console%2eexample', 'refused'],
    ['https://xn--console-.example', 'refused'],
    ['https://console.exampl\xe9', 'refused'],
    ['file://console.example', 'refused'],
    ['https://sub.console.example', 'refused'],
    ['https://console.example, https://console.example', 'refused'],
    ['https://shop.example/base', 'refused'],
  ];
  for (const [origin, verdict] of ORIGINS)
    it(`"${origin}" is ${verdict}`, async () => {
      const answer = await get(listener.url, ['Host: shop', `Origin: ${origin}`]);
      const allowed = /access-control-allow-origin: (.*)/i.exec(answer)?.[1];
      assert.match(answer, verdict === 'refused' ? /^HTTP\/1\.1 403 / : /^HTTP\/1\.1 200 /);
      assert.equal(allowed, verdict === 'named' ? origin : undefined);
      assert.doesNotMatch(answer, /access-control-allow-credentials/i);
    });

  it('two origins are refused, also when both are listed', async () => {
    const answer = await get(listener.url, [
      'Host: shop',
      'Origin: https://console.example',
      'Origin: https://console.example',
    ]);
    assert.match(answer, /^HTTP\/1\.1 403 /);
  });

  it('without an origin there are no CORS headers', async () => {
    assert.doesNotMatch(await get(listener.url, ['Host: shop']), /access-control/i);
  });
});

describe('a preflight at the address of something sold', () => {
  let listener: BareListener;
  before(async () => {
    const inPlace = {
      methodsOf: (res: Response) => (res.req.path === '/sold' ? 'PUT, OPTIONS' : undefined),
      headers: ['range', 'accept'],
    };
    listener = await openBareListener([checkOrigin(['https://page.example'], 'https://shop.example', [], inPlace)]);
  });
  after(() => listener.close());
  const preflight = async (target: string, origin: string): Promise<string> => {
    const lines = ['Host: shop', `Origin: ${origin}`, 'Access-Control-Request-Method: PUT', 'Connection: close'];
    return exchange(listener.url, [head([`OPTIONS ${target} HTTP/1.1`, ...lines])]);
  };

  it('names its methods and headers; the routes of the gateway name theirs', async () => {
    const sold = await preflight('/sold', 'https://page.example');
    assert.match(sold, /^HTTP\/1\.1 204 [\s\S]*access-control-allow-methods: PUT, OPTIONS\r\n/);
    assert.match(sold, /access-control-allow-headers: content-type, .*, range, accept\r\n/);
    const own = await preflight('/api/resources', 'https://page.example');
    assert.match(own, /access-control-allow-methods: GET, POST, OPTIONS\r\n/);
    assert.doesNotMatch(own, /allow-headers:.* range/);
  });

  it('is refused for a page that is not listed', async () => {
    assert.match(await preflight('/sold', 'https://evil.test'), /^HTTP\/1\.1 403 /);
  });
});

describe('the host list', () => {
  let listener: BareListener;
  before(async () => {
    listener = await openBareListener([
      checkHost(['Shop.example', 'shop.example:8402', '127.0.0.1:8402', '[::1]:8402']),
    ]);
  });
  after(() => listener.close());

  const HOSTS: readonly (readonly [host: string, served: boolean])[] = [
    ['shop.example', true],
    ['SHOP.EXAMPLE', true],
    ['shop.example:8402', true],
    ['127.0.0.1:8402', true],
    ['[::1]:8402', true],
    ['', false],
    ['shop.example:80', false],
    ['shop.example.', false],
    ['shop.example:8402 ', true],
    ['a.shop.example', false],
    ['shop.example.evil.test', false],
    ['127.0.0.1', false],
    ['[::1]', false],
    ['[0:0:0:0:0:0:0:1]:8402', false],
    ['[::ffff:127.0.0.1]:8402', false],
    ['user@shop.example', false],
    ['shop.example, shop.example', false],
  ];
  for (const [host, served] of HOSTS)
    it(`"${host}" is ${served ? 'served' : 'refused'}`, async () => {
      const answer = await get(listener.url, [`Host: ${host}`]);
      assert.match(answer, served ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 403 [\s\S]*"code":"FORBIDDEN"/);
    });

  it('the host of a target in absolute form counts too: neither hides the other', async () => {
    for (const [target, host, status] of [
      ['http://shop.example/', 'shop.example', 200],
      ['http://evil.test/', 'shop.example', 403],
      ['http://shop.example/', 'evil.test', 403],
      ['gopher://evil.test/', 'shop.example', 403],
    ] as const)
      assert.match(await get(listener.url, [`Host: ${host}`], target), new RegExp(`^HTTP/1\\.1 ${status} `), target);
  });

  it('HTTP/1.0 without Host is no listed host', async () => {
    assert.match(await exchange(listener.url, ['GET / HTTP/1.0\r\n\r\n']), /^HTTP\/1\.1 403 /);
  });
});
