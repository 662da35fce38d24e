import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Answered, ask } from '../e2e/ask.ts';
import { envelopeOf, exchange, head, statusOf } from '../server/http/raw.ts';
import { createBuyer } from '../support/buyer.ts';
import { NO_CHAIN } from '../support/config.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { answerJson } from '../support/http-server.ts';
import {
  DECLINED,
  type Merchant,
  openPassthroughTestbed,
  type PassthroughTestbed,
  PUBLIC_URL,
  startMerchant,
  WEBSOCKET,
} from './testbed.ts';

const PREFIX = '/shop/v1';
const IN_PLACE = { expose: ['http', 'origin'] };
/** The facilitator asks for no money, so the buyer needs none. */
const noToken = { mint: async () => undefined, balanceOf: async () => 0n };

describe('a backend whose base URL has a path', () => {
  let merchant: Merchant;
  let facilitator: HostileFacilitator;
  let testbed: PassthroughTestbed;
  /** Targets that the backend was asked for since the test began. */
  let asked: string[] = [];
  let upgrades: string[] = [];
  beforeEach(() => {
    asked = [];
    upgrades = [];
  });
  before(async () => {
    merchant = await startMerchant(({ url = '' }, res) => {
      asked.push(url);
      answerJson(res, 200, { asked: url });
    });
    merchant.server.on('upgrade', ({ url = '' }: IncomingMessage, socket: Socket) => {
      upgrades.push(url);
      socket.end(DECLINED);
    });
    facilitator = await startHostileFacilitator(`eip155:${NO_CHAIN.chainId}`);
    testbed = await openPassthroughTestbed({
      backendUrl: `${merchant.url}${PREFIX}/`,
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: {
        payments: { x402: { rpcUrl: undefined } },
        resources: { market_report: IN_PLACE, cities: IN_PLACE },
      },
    });
  });
  after(async () => {
    await testbed.close();
    merchant.close();
    await facilitator.stop();
  });
  const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answered> =>
    ask(testbed.url, { method: 'GET', path, headers });
  /** Sent as it is written: `ask` would resolve dot segments. */
  const getRaw = (path: string, lines: readonly string[], method = 'GET', next = ''): Promise<string> =>
    exchange(testbed.url, [head([`${method} ${path} HTTP/1.1`, 'Host: shop.example', ...lines]) + next]);

  it('is sold at addresses without it: in the listing, in the offer, and where it is paid', async () => {
    const listing = JSON.parse((await get('/api/resources')).text) as {
      readonly resources: readonly { readonly id: string; readonly address?: string }[];
    };
    const address = listing.resources.find(({ id }) => id === 'market_report')?.address;
    assert.equal(address, `${PUBLIC_URL}/reports/{city}`);
    const quote = await get('/reports/Berlin?x=1');
    assert.deepEqual([quote.status, asked], [402, []]);
    const offer = JSON.parse(Buffer.from(String(quote.headers['payment-required']), 'base64').toString()) as {
      readonly resource: { readonly url: string };
    };
    assert.equal(offer.resource.url, `${PUBLIC_URL}/reports/Berlin`);
    const proof = await (await createBuyer(noToken, 0n)).pay(offer);
    const bought = await get('/reports/Berlin?x=1', { 'payment-signature': proof });
    assert.deepEqual([bought.status, JSON.parse(bought.text)], [200, { asked: `${PREFIX}/reports/Berlin` }]);
    assert.deepEqual(asked, [`${PREFIX}/reports/Berlin`]);
  });

  it('is asked behind it for what is free in place, for what is invoked, and for what passes', async () => {
    for (const [path, behind] of [
      ['/cities', '/cities'],
      ['/?x=1', '/?x=1'],
      ['/shop/v1', '/shop/v1'],
      ['/shop/v1/report/Berlin', '/shop/v1/report/Berlin'],
      ['/a//b?c=/report/Berlin', '/a//b?c=/report/Berlin'],
    ] as const) {
      asked = [];
      assert.equal((await get(path)).status, 200, path);
      assert.deepEqual(asked, [PREFIX + behind]);
    }
    asked = [];
    assert.equal((await testbed.gateway.invoke('cities')).status, 200);
    assert.deepEqual(asked, [`${PREFIX}/cities`]);
  });

  it('has no WebSockets at what it sells in place, nor at routes of the gateway', async () => {
    for (const path of ['/reports/Berlin', '/cities', '/api/resources', '/health']) {
      const got = await getRaw(path, WEBSOCKET);
      assert.deepEqual(envelopeOf(got), { code: 'INPUT_INVALID', reason: 'no_upgrade' }, path);
    }
    assert.deepEqual([asked, upgrades], [[], []]);
  });

  it('is asked behind it for WebSockets, with the bytes of their targets', async () => {
    for (const path of ['/chat?room=1', '/shop/v1/chat', '/a//b%7e', '/']) {
      const got = await getRaw(path, WEBSOCKET);
      assert.equal(statusOf(got), 403);
      assert.equal(upgrades.pop(), PREFIX + path);
    }
  });

  for (const target of ['/', '/nowhere', '/reports/Berlin', 'shop.example:443'])
    it(`is no end of a tunnel to ${target}, and nothing sent through it is served`, async () => {
      const next = head(['GET /nowhere HTTP/1.1', 'Host: a', 'Connection: close']);
      const got = await getRaw(target, [], 'CONNECT', next);
      assert.deepEqual(envelopeOf(got), { code: 'INPUT_INVALID', reason: 'no_tunnel' });
      assert.deepEqual([got.split('HTTP/1.1').length, asked], [2, []]);
    });
});
