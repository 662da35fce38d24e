import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { exchange, head } from '../server/http/raw.ts';
import {
  DECLINED,
  type Merchant,
  openPassthroughTestbed,
  type PassthroughTestbed,
  startMerchant,
  WEBSOCKET,
} from './testbed.ts';

describe('what a backend learns of the caller of a passed request', () => {
  let merchant: Merchant;
  /** Newest last. */
  const seen: IncomingHttpHeaders[] = [];
  before(async () => {
    merchant = await startMerchant((req, res) => {
      seen.push(req.headers);
      res.end();
    });
    merchant.server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
      seen.push(req.headers);
      socket.end(DECLINED);
    });
  });
  after(() => merchant.close());

  const HOST = 'Host: shop.example:8443';
  /** Host and forwarding headers that come of these lines, in a request and in an upgrade. */
  async function toldBy(testbed: PassthroughTestbed, lines: readonly string[]) {
    const told = [];
    for (const kind of [['Connection: close'], WEBSOCKET]) {
      const known = seen.length;
      await exchange(testbed.url, [head(['GET /any HTTP/1.1', HOST, ...lines, ...kind])]);
      assert.equal(seen.length, known + 1);
      const headers = seen.at(-1) ?? {};
      const named = Object.entries(headers).filter(([name]) => name.startsWith('x-forwarded-') || name === 'forwarded');
      told.push({ host: headers.host, ...Object.fromEntries(named) });
    }
    assert.deepEqual(told[0], told[1], 'of a request and of an upgrade');
    return told[0];
  }

  const SHOP = {
    host: 'shop.example:8443',
    'x-forwarded-host': 'shop.example:8443',
    'x-forwarded-port': '8443',
    'x-forwarded-proto': 'https',
    'x-forwarded-for': '127.0.0.1',
  };
  const FORWARDED = 'X-Forwarded-For: 192.0.2.1, 192.0.2.2, 192.0.2.3';

  /** By the number of trusted proxies. */
  const ROWS: readonly (readonly [proxies: number, what: string, lines: readonly string[], told: object])[] = [
    [0, 'a list of addresses', [FORWARDED, 'X-Forwarded-Proto: http'], {}],
    [0, 'another form of it', ['Forwarded: for=192.0.2.1;proto=http', 'X_Forwarded_For: 192.0.2.1'], {}],
    [1, 'nothing', [], {}],
    [1, 'a list of addresses', [FORWARDED], { 'x-forwarded-for': '192.0.2.3' }],
    [
      1,
      'the whole of an address that limits count by its network',
      ['X-Forwarded-For: [2001:db8:1:2:3:4:5:6]:443'],
      { 'x-forwarded-for': '2001:db8:1:2:3:4:5:6' },
    ],
    [1, 'a scheme', ['X-Forwarded-Proto: http'], { 'x-forwarded-proto': 'http' }],
    [
      1,
      'schemes, of which the last is that of the proxy',
      ['X-Forwarded-Proto: https, HTTP'],
      { 'x-forwarded-proto': 'http' },
    ],
    [1, 'a scheme that is none', ['X-Forwarded-Proto: gopher'], {}],
    [1, 'host and port that the caller made up', ['X-Forwarded-Host: evil.example', 'X-Forwarded-Port: 1'], {}],
    [1, 'fields in another spelling', ['X_Forwarded_For: 192.0.2.1', 'X.Forwarded.Proto: http'], {}],
  ];
  for (const [proxies, rows] of Map.groupBy(ROWS, ([count]) => count))
    describe(`behind ${proxies} trusted proxies`, () => {
      let testbed: PassthroughTestbed;
      before(async () => {
        const overrides = { server: { trustProxy: proxies } };
        testbed = await openPassthroughTestbed({ backendUrl: merchant.url, overrides });
      });
      after(() => testbed.close());

      for (const [, what, lines, told] of rows)
        it(`${what}: ${JSON.stringify(told)}`, async () => {
          assert.deepEqual(await toldBy(testbed, lines), { ...SHOP, ...told });
        });
    });

  it('is the scheme of the public address, where no proxy names one', async () => {
    const overrides = { merchant: { publicBaseUrl: 'http://localhost:8402' } };
    await using testbed = await openPassthroughTestbed({ backendUrl: merchant.url, overrides });
    assert.deepEqual(await toldBy(testbed, []), { ...SHOP, 'x-forwarded-proto': 'http' });
  });

  it('is its own host, where that of the caller is not preserved, and that of the caller beside it', async () => {
    const passthrough = { preserveHost: false };
    await using testbed = await openPassthroughTestbed({ backendUrl: `${merchant.url}/shop`, passthrough });
    assert.deepEqual(await toldBy(testbed, []), { ...SHOP, host: new URL(merchant.url).host });
  });
});
