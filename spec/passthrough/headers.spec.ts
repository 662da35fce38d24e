import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { failurePage } from '../../src/passthrough/failure-page.ts';
import { cleanRequestHeaders } from '../../src/passthrough/request-headers.ts';
import { cleanResponseHeaders, publicUrls, unusableAnswer } from '../../src/passthrough/response-headers.ts';

const FACTS = { client: '192.0.2.7', proto: 'https', requestId: 'req_1', host: undefined } as const;

function message(headers: Readonly<Record<string, string>>): IncomingMessage {
  const made = new IncomingMessage(new Socket());
  made.headers = { ...headers };
  return made;
}

function sent(headers: Readonly<Record<string, string>>, facts: object = {}, upgrade = false): object {
  const req = message({ host: 'shop.example', ...headers });
  cleanRequestHeaders(req, { ...FACTS, ...facts }, upgrade);
  return req.headers;
}

const OURS = {
  host: 'shop.example',
  'x-request-id': 'req_1',
  'x-forwarded-for': '192.0.2.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'shop.example',
  'x-forwarded-port': '443',
};

describe('the headers that a backend gets', () => {
  it('are those of the caller, and what the gateway says', () => {
    const theirs = { cookie: 'a=b', authorization: 'Bearer t', 'content-length': '3', 'x-own': '1' };
    assert.deepEqual(sent(theirs), { ...theirs, ...OURS });
  });

  for (const name of [
    ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'te', 'trailer', 'upgrade', 'expect'],
    ...['http2-settings', 'agent-commerce-payer', 'agent-authorization', 'agent-authorization-checkout'],
    ...['payment-signature', 'payment-required', 'x-payment', 'x-payment-response', 'x-original-url'],
    ...['x-original-host', 'x-rewrite-url', 'x-http-method', 'x-http-method-override', 'x-method-override'],
    ...['forwarded', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-prefix', 'x-forwarded-proto'],
    ...['x-request-id', 'transfer_encoding', 'content_length'],
  ])
    it(`have no ${name} of the caller, in any spelling`, () => {
      for (const spelled of [name, name.replaceAll('-', '_'), name.replaceAll('-', '.'), name.replace('-', '_')])
        assert.deepEqual(sent({ [spelled]: 'forged' }), OURS, spelled);
    });

  it('keep what says where the message ends, although Connection names it', () => {
    const named = { connection: 'Content-Length, transfer-encoding, HOST, X-Own, x-request-id' };
    assert.deepEqual(sent({ ...named, 'content-length': '3', 'x-own': '1' }), { 'content-length': '3', ...OURS });
  });

  it('name the host of the backend where it wants its own, and the public one beside it', () => {
    assert.deepEqual(sent({ host: 'shop.example:8443' }, { host: '127.0.0.1:3000', proto: 'http' }), {
      ...OURS,
      host: '127.0.0.1:3000',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'shop.example:8443',
      'x-forwarded-port': '8443',
    });
  });

  it('repeat no host that is none', () => {
    const { 'x-forwarded-host': _host, 'x-forwarded-port': _port, ...others } = OURS;
    assert.deepEqual(sent({ host: 'a, b' }), { ...others, host: 'a, b' });
  });

  it('keep the upgrade of a WebSocket alone', () => {
    const asked = { connection: 'keep-alive, Upgrade, X-Own', upgrade: 'WebSocket', 'x-own': '1' };
    assert.deepEqual(sent(asked, {}, true), { ...OURS, connection: 'Upgrade', upgrade: 'websocket' });
  });
});

describe('the headers that a caller gets', () => {
  const publicUrl = publicUrls({
    origin: 'http://127.0.0.1:3000',
    pathPrefix: '/shop',
    publicBaseUrl: 'https://api.shop.example',
  });

  it('are those of the backend, without those of its connection and of payments', () => {
    const answer = message({
      ...{ 'content-type': 'text/plain', 'content-length': '3', connection: 'x-own, content-length', 'x-own': '1' },
      ...{
        'keep-alive': 'timeout=5',
        'transfer-encoding': 'chunked',
        'payment-response': 'x',
        'x-payment-response': 'x',
        'service-worker-allowed': '/',
      },
      ...{ agent_commerce_payer: 'x', 'agent-authorization-receipt': 'x', 'x-request-id': 'x', trailer: 'x' },
    });
    cleanResponseHeaders(answer, publicUrl);
    assert.deepEqual(answer.headers, { 'content-type': 'text/plain', 'content-length': '3' });
  });

  for (const [location, told] of [
    ['http://127.0.0.1:3000/shop/a?b#c', 'https://api.shop.example/a?b#c'],
    ['http://LOCALHOST:3000/shop', 'https://api.shop.example'],
    ['//[::1]:3000/shop/a', 'https://api.shop.example/a'],
    ['http://127.0.0.1:3000/admin', undefined],
    ['http://127.0.0.1:3000/shopping', undefined],
    ['http://127.0.0.1:3001/shop', 'http://127.0.0.1:3001/shop'],
    ['https://other.example/shop/a', 'https://other.example/shop/a'],
    ['/shop/a', '/a'],
    ['/elsewhere', '/elsewhere'],
    ['a', 'a'],
  ] as const)
    it(`tell a Location of ${location} as ${told}`, () => {
      const answer = message({ location, 'content-location': location });
      cleanResponseHeaders(answer, publicUrl);
      assert.equal(answer.headers.location, told);
      assert.equal(answer.headers['content-location'], told);
    });

  it('are relayed for statuses between 200 and 599 that ask for no payment', () => {
    for (const [status, reason] of [
      [199, 'backend_status'],
      [200, undefined],
      [402, 'backend_payment_required'],
      [599, undefined],
      [600, 'backend_status'],
    ] as const)
      assert.equal(unusableAnswer(Object.assign(message({}), { statusCode: status })), reason);
  });
});

describe('the page of a failure', () => {
  it('has no markup of its texts', () => {
    const page = failurePage(new GatewayError('BACKEND_ERROR', { message: '<b>"&' }), 'req_1');
    assert.ok(page.includes('&#60;b&#62;&#34;&#38;'));
    assert.ok(page.includes('Request req_1'));
  });
});
