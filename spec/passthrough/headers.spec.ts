import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import {
  cleanRequestHeaders,
  cleanResponseHeaders,
  passedFields,
  publicUrls,
  unusableAnswer,
} from '../../src/passthrough/headers.ts';

const FACTS = {
  ...({ client: '192.0.2.7', proto: 'https', requestId: 'req_1', host: undefined } as const),
  passes: passedFields({ allowed: [], configured: [] }),
};

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

/** What gunicorn, daphne, WSGI and ASGI middleware, frameworks, platforms and proxies believe. */
const REROUTING_OR_NAMING: readonly string[] = [
  ...['script-name', 'path-info', 'x-script-name', 'x-forwarded-script-name', 'daphne-root-path', 'x-root-path'],
  ...['x-path-prefix', 'x-forwarded-prefix', 'path-translated', 'request-uri', 'x-path-info', 'x-base-path'],
  ...['x-envoy-original-path', 'x-envoy-original-host', 'x-envoy-external-address', 'x-waws-unencoded-url'],
  ...['x-matched-path', 'x-now-route-matches', 'x-invoke-path', 'x-invoke-query', 'x-middleware-rewrite'],
  ...['x-middleware-subrequest', 'x-host', 'x-http-host-override', 'x-host-override', 'x-replaced-path'],
  ...['x-astro-path', 'x-astro-locals', 'x-sendfile-type', 'x-accel-mapping', 'x-accel-redirect', 'x-base-url'],
  ...['remote-user', 'x-remote-user', 'x-remote-group', 'remote-groups', 'x-auth-request-user', 'x-webauth-user'],
  ...['x-authenticated-userid', 'x-consumer-username', 'x-goog-authenticated-user-email', 'x-forwarded-user'],
  ...['x-ms-client-principal-name', 'x-amzn-oidc-identity', 'oidc-claim-sub', 'tailscale-user-login', 'sm-user'],
  ...['x-user', 'x-user-id', 'x-username', 'x-userinfo', 'x-proxy-user', 'cf-access-authenticated-user-email'],
  ...['x-ssl-client-cert', 'ssl-client-cert', 'ssl-client-verify', 'x-client-cert', 'x-client-dn', 'client-cert'],
  ...['x-forwarded-client-cert', 'x-arr-clientcert', 'x-tls-client-cert', 'x-amzn-mtls-clientcert'],
  ...['true-client-ip', 'cf-connecting-ip', 'cf-connecting-ipv6', 'cf-pseudo-ipv4', 'x-client-ip', 'client-ip'],
  ...['x-cluster-client-ip', 'fastly-client-ip', 'fly-client-ip', 'x-azure-clientip', 'x-nf-client-connection-ip'],
  ...['x-appengine-user-ip', 'x-remote-ip', 'x-remote-addr', 'remote-addr', 'x-originating-ip', 'x-proxyuser-ip'],
  ...['wl-proxy-client-ip', 'proxy-host', 'proxy', 'x-vercel-forwarded-for', 'x-url-scheme', 'front-end-https'],
];

const ORDINARY: readonly string[] = [
  ...['accept', 'accept-encoding', 'accept-language', 'authorization', 'cache-control', 'content-type', 'cookie'],
  ...['dnt', 'if-match', 'if-none-match', 'if-modified-since', 'origin', 'pragma', 'priority', 'range', 'referer'],
  ...['sec-ch-ua', 'sec-fetch-site', 'sec-websocket-key', 'sec-websocket-protocol', 'upgrade-insecure-requests'],
  ...['user-agent', 'via', 'x-requested-with', 'x-csrf-token', 'x-csrftoken', 'x-xsrf-token', 'x-api-key'],
  ...['x-auth-token', 'idempotency-key', 'traceparent', 'tracestate', 'baggage', 'x-b3-traceid', 'last-event-id'],
  ...['hx-request', 'hx-current-url', 'turbo-frame', 'x-inertia', 'rsc', 'next-url', 'next-router-state-tree'],
  ...['next-action', 'x-nextjs-data', 'x-grpc-web', 'x-user-agent', 'apollo-require-preflight', 'depth', 'destination'],
  ...['x-hub-signature-256', 'stripe-signature', 'x-github-event', 'x-amz-date', 'x-amz-content-sha256', 'cf-ray'],
  ...['tus-resumable', 'upload-offset', 'x-membership', 'x-tenant-id', 'x-client-id', 'x-timezone', 'cdn-loop'],
];

describe('the headers that a backend gets', () => {
  it('are those of the caller, and what the gateway says', () => {
    const theirs = { cookie: 'a=b', authorization: 'Bearer t', 'content-length': '3', 'x-own': '1' };
    assert.deepEqual(sent(theirs), { ...theirs, ...OURS });
  });

  for (const name of [
    ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'te', 'trailer', 'upgrade', 'expect'],
    ...[
      'http2-settings',
      'agent-commerce-payer',
      'agent-commerce-payment',
      'agent-authorization',
      'agent-authorization-checkout',
    ],
    ...['payment-signature', 'payment-required', 'x-payment', 'x-payment-response', 'x-original-url'],
    ...['x-original-host', 'x-rewrite-url', 'x-http-method', 'x-http-method-override', 'x-method-override'],
    ...['forwarded', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-prefix', 'x-forwarded-proto'],
    ...['x-request-id', 'transfer_encoding', 'content_length'],
  ])
    it(`have no ${name} of the caller, in any spelling`, () => {
      for (const spelled of [name, name.replaceAll('-', '_'), name.replaceAll('-', '.'), name.replace('-', '_')])
        assert.deepEqual(sent({ [spelled]: 'forged' }), OURS, spelled);
    });

  it('have none that moves the path or names the caller to some server', () => {
    const kept = REROUTING_OR_NAMING.filter((name) => FACTS.passes(name) || FACTS.passes(name.replaceAll('-', '_')));
    assert.deepEqual(kept, []);
  });

  it('have no name but of letters, digits and hyphens, as CGI reads others as these', () => {
    assert.deepEqual(
      ['a_b', 'a.b', 'a!', 'script_name', 'x_own', 'http_host', "a'b"].filter((name) => FACTS.passes(name)),
      [],
    );
  });

  it('have what browsers and clients of interfaces send', () => {
    assert.deepEqual(
      ORDINARY.filter((name) => !FACTS.passes(name)),
      [],
    );
  });

  it('have no field that the configuration sets in sold calls, but what every client says of itself', () => {
    const passes = passedFields({ allowed: [], configured: ['x-backend-key', 'authorization', 'accept'] });
    assert.deepEqual(['x-backend-key', 'x_backend_key', 'authorization', 'accept', 'x-backend'].map(passes), [
      false,
      false,
      false,
      true,
      true,
    ]);
  });

  it('have a field that is allowed, in that spelling alone', () => {
    const passes = passedFields({ allowed: ['cf-connecting-ip', 'x_own', 'x-key'], configured: ['x-key'] });
    assert.deepEqual(
      ['cf-connecting-ip', 'cf_connecting_ip', 'true-client-ip', 'x_own', 'x-key', 'x_key'].map(passes),
      [true, false, false, true, true, false],
    );
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

  it('keep the upgrade of a WebSocket alone', () => {
    const asked = { connection: 'keep-alive, Upgrade, X-Own', upgrade: 'WebSocket', 'x-own': '1' };
    assert.deepEqual(sent(asked, {}, true), { ...OURS, connection: 'Upgrade', upgrade: 'websocket' });
  });
});

describe('the headers that a caller gets', () => {
  const publicUrl = publicUrls('http://127.0.0.1:3000', '/shop', 'https://api.shop.example');

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

  for (const [link, told] of [
    [
      '<http://127.0.0.1:3000/shop/2>; rel=next, </shop/a>; rel=prev',
      '<https://api.shop.example/2>; rel=next, </a>; rel=prev',
    ],
    ['<https://other.example/>; rel=next', '<https://other.example/>; rel=next'],
    ['<http://localhost:3000/admin>; rel=next', undefined],
  ] as const)
    it(`tell a Link of ${link} as ${told}`, () => {
      const answer = message({ link });
      cleanResponseHeaders(answer, publicUrl);
      assert.equal(answer.headers['link'], told);
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
