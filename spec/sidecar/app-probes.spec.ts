import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { after, describe, it } from 'node:test';
import { plainExpress } from '../../src/app/plain-express.ts';
import { errorHandler } from '../../src/pipeline/middleware/error-handler.ts';
import { identify } from '../../src/server/http/access-record.ts';
import type { AppProbe } from '../../src/sidecar/app-probe-settings.ts';
import { appProbes } from '../../src/sidecar/app-probes.ts';
import { createAuthority } from '../support/certificates.ts';
import { serveHttp } from '../support/http-server.ts';
import { freePorts } from '../support/ports.ts';

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A merchant that answers so; `asked` are the targets of its requests so far. */
async function merchant(
  answer: Answer,
): Promise<{ readonly port: number; readonly asked: readonly IncomingMessage[] }> {
  const asked: IncomingMessage[] = [];
  const server = await serveHttp(({ request, response }) => {
    asked.push(request);
    answer(request, response);
  });
  ends.defer(() => server.stop());
  return { port: Number(new URL(server.url).port), asked };
}

/** The management app with this liveness probe, and the URL that the kubelet would ask. */
async function gateway(
  probe: Partial<AppProbe> & Pick<AppProbe, 'port'>,
  isSold = (_: string) => false,
): Promise<string> {
  const app = plainExpress();
  app.use(identify());
  app.use(appProbes({ liveness: { scheme: 'http', target: '/healthz', headers: [], ...probe } }, isSold));
  app.use(errorHandler(() => undefined));
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.defer(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/app-probe/liveness`;
}

const answering =
  (status: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) =>
    void response
      .writeHead(status, headers)
      .end(status === 204 || status === 304 ? undefined : 'secret of the merchant');

describe('a probe of the merchant, repeated', () => {
  for (const status of [200, 204, 304, 404, 500, 503])
    it(`passes on ${status} and nothing of the body`, async () => {
      const { port } = await merchant(answering(status, { 'x-secret': 'too', 'set-cookie': 'a=b' }));
      const answer = await fetch(await gateway({ port }));
      assert.equal(answer.status, status);
      assert.doesNotMatch(await answer.text(), /secret/);
      assert.equal(answer.headers.get('x-secret'), null);
      assert.equal(answer.headers.get('set-cookie'), null);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
    });

  it('has the path, query and headers of the original, and what the kubelet adds', async () => {
    const { port, asked } = await merchant(answering(200));
    const headers = [
      ['X-Twice', 'one'],
      ['X-Twice', 'two'],
      ['Content-Length', '5'],
      ['Upgrade', 'h2c'],
    ] as const;
    const url = await gateway({ port, target: '/healthz?deep=1', headers });
    await fetch(url, { headers: { 'user-agent': 'kube-probe/1.36', cookie: 'from=outside' } });
    assert.equal(asked[0]?.url, '/healthz?deep=1');
    assert.deepEqual(asked[0]?.rawHeaders, [
      ...['host', `127.0.0.1:${port}`, 'connection', 'close', 'User-Agent', 'kube-probe/1.36', 'Accept', '*/*'],
      ...['X-Twice', 'one', 'X-Twice', 'two'],
    ]);
  });

  it('keeps the Host, User-Agent and Accept of the original, and takes no other name for the kubelet', async () => {
    const { port, asked } = await merchant(answering(200));
    const headers = [
      ['host', 'shop.example'],
      ['Accept', ''],
    ] as const;
    await fetch(await gateway({ port, headers }), { headers: { 'user-agent': 'Mozilla/5.0' } });
    await fetch(await gateway({ port, headers: [['User-Agent', 'check']] }));
    assert.deepEqual(asked[0]?.rawHeaders, [
      ...['host', 'shop.example', 'connection', 'close', 'User-Agent', 'kube-probe'],
    ]);
    assert.equal(asked[1]?.headers['user-agent'], 'check');
    assert.equal(asked[1]?.headers.accept, '*/*');
  });

  it('speaks TLS to a merchant whose certificate no known authority signed', async () => {
    const { certificate, key } = createAuthority('unknown').issue();
    const server = createTlsServer({ cert: certificate, key }, (_, response) => void response.writeHead(202).end());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.defer(() => void server.close());
    const url = await gateway({ scheme: 'https', port: (server.address() as AddressInfo).port });
    assert.equal((await fetch(url)).status, 202);
  });

  it('follows redirects of the same server, by whichever of its names', async () => {
    const { port, asked } = await merchant((request, response) => {
      const to: Readonly<Record<string, string>> = { '/healthz': 'one', '/one': `http://127.0.0.1:${port}/two?x=1` };
      const location = to[request.url ?? ''];
      response.writeHead(location === undefined ? 500 : 302, location === undefined ? {} : { location }).end();
    });
    assert.equal((await fetch(await gateway({ port }))).status, 500);
    assert.deepEqual(
      asked.map(({ url }) => url),
      ['/healthz', '/one', '/two?x=1'],
    );
  });

  it('takes a redirect to anywhere else for the answer, and does not name the place', async () => {
    const other = await merchant(answering(500));
    for (const location of [
      `http://127.0.0.1:${other.port}/`,
      'http://shop.example/',
      'https://127.0.0.1/',
      '//user@127.0.0.1/',
      'http://[no-address/',
      '/sold/report',
    ]) {
      const { port, asked } = await merchant((_, response) => void response.writeHead(302, { location }).end());
      const url = await gateway({ port, target: '/go' }, (target) => target.startsWith('/sold'));
      const answer = await fetch(url, { redirect: 'manual' });
      assert.equal(answer.status, 302, location);
      assert.equal(answer.headers.get('location'), null);
      assert.equal(new Set(asked.map(({ url: target }) => target)).size, 1, location);
    }
    assert.equal(other.asked.length, 0);
  });

  it('fails where redirects do not end', async () => {
    const { port, asked } = await merchant(answering(307, { location: '/healthz' }));
    assert.equal((await fetch(await gateway({ port }))).status, 502);
    assert.equal(asked.length, 11);
  });

  it('never asks for what is sold', async () => {
    const { port, asked } = await merchant(answering(200));
    assert.equal((await fetch(await gateway({ port }, () => true))).status, 404);
    assert.equal(asked.length, 0);
  });

  it('fails where the merchant is not there, breaks off, or speaks something else', async () => {
    const [gone = 0] = await freePorts(1);
    assert.equal((await fetch(await gateway({ port: gone }))).status, 502);
    const broken = await merchant((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('x', () => response.destroy());
    });
    assert.equal((await fetch(await gateway({ port: broken.port }))).status, 502);
    const odd = await raw('HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n');
    assert.equal((await fetch(await gateway({ port: odd }))).status, 502);
  });

  it('is answered after the first 10 KiB of a body without end', async () => {
    const { port } = await merchant((_, response) => {
      response.writeHead(200);
      const more = (): void => void response.write('x'.repeat(4_096), () => response.destroyed || setImmediate(more));
      more();
    });
    assert.equal((await fetch(await gateway({ port }))).status, 200);
  });

  it('ends when the kubelet ends its connection, and the next one asks anew', async () => {
    const arrived = Promise.withResolvers<IncomingMessage>();
    const { port, asked } = await merchant((request, response) => {
      if (asked.length === 1) arrived.resolve(request);
      else response.writeHead(200).end();
    });
    const url = new URL(await gateway({ port }));
    const kubelet = connect(Number(url.port), '127.0.0.1');
    kubelet.write(`GET ${url.pathname} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const request = await arrived.promise;
    const ended = once(request.socket, 'close');
    kubelet.destroy();
    await ended;
    assert.equal((await fetch(url)).status, 200);
    assert.equal(asked.length, 2);
  });

  it('is shared by those that come while one is under way', async () => {
    const held: ServerResponse[] = [];
    const arrived = Promise.withResolvers<void>();
    const { port, asked } = await merchant((_, response) => {
      held.push(response);
      arrived.resolve();
    });
    const url = await gateway({ port });
    const first = fetch(url);
    await arrived.promise;
    const others = Array.from({ length: 20 }, () => fetch(url));
    // The last of them is under way once a request behind it on the listener is answered.
    assert.equal((await fetch(url, { method: 'POST' })).status, 405);
    for (const response of held) response.writeHead(201).end();
    for (const answer of await Promise.all([first, ...others])) assert.equal(answer.status, 201);
    assert.ok(asked.length <= 2, `${asked.length} requests for 21`);
  });

  it('serves GET alone', async () => {
    const { port, asked } = await merchant(answering(200));
    const url = await gateway({ port });
    for (const method of ['HEAD', 'POST', 'PUT', 'DELETE']) {
      const answer = await fetch(url, { method });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get('allow'), 'GET');
    }
    assert.equal(asked.length, 0);
  });

  it('is no route where the merchant has none', async () => {
    const url = await gateway({ port: 1 });
    assert.equal((await fetch(url.replace('liveness', 'readiness'))).status, 404);
    assert.equal((await fetch(url.replace('liveness', 'other'))).status, 404);
  });
});

/** A server that answers these bytes. */
async function raw(bytes: string): Promise<number> {
  const server = createTcpServer((socket) => socket.once('data', () => socket.end(bytes)).on('error', () => undefined));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
}
