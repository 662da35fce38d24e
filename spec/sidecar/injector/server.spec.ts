import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { connect as connectPlain } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { createInjectorServer, readIdentity } from '../../../src/sidecar/injector/server.ts';
import { createAuthority } from '../../support/certificates.ts';
import { bytesOf as readAll } from '../../support/http-server.ts';
import { bytesOf, reviewOf } from './reviews.ts';
import { type Answer, answerOf, ask, type RunningInjector, startInjector } from './running-injector.ts';

const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** A review with blanks behind it, so many bytes long. */
function padded(length: number): Buffer {
  const review = bytesOf(reviewOf());
  return Buffer.concat([review, Buffer.alloc(length - review.length, ' ')]);
}

/** Fails unless the answer is a refusal that says why, as Kubernetes spells one. */
function assertRefused({ status, document }: Answer, code: number, message: RegExp): void {
  assert.equal(status, code);
  assert.deepEqual([document.kind, document.code], ['Status', code]);
  assert.match(document.message ?? '', message);
}

describe('the server of an injector', () => {
  const ends = new AsyncDisposableStack();
  let injector: RunningInjector;
  before(async () => {
    injector = await startInjector(ends);
  });
  after(() => ends.disposeAsync());

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    it(`answers a review over ${version}`, async () => {
      const tls = { minVersion: version, maxVersion: version };
      const { status, headers, document } = await ask(injector, { body: reviewOf(), tls });
      assert.equal(status, 200);
      assert.equal(headers['content-type'], 'application/json');
      assert.deepEqual([document.kind, document.response?.uid], ['AdmissionReview', reviewUid()]);
      const patch = Buffer.from(document.response?.patch ?? '', 'base64').toString();
      assert.match(patch, /registry\.example\/gateway:1/);
    });

  it('speaks no older TLS', async () => {
    const tls = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await assert.rejects(ask(injector, { body: reviewOf(), tls }), /alert protocol version|unsupported protocol/i);
  });

  for (const [how, headers] of [
    ['with its length', { 'content-length': MAX_BODY_BYTES }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ] as const) {
    it(`takes a body of 3 MiB ${how}`, async () => {
      assert.equal((await ask(injector, { body: padded(MAX_BODY_BYTES), headers })).status, 200);
    });

    it(`refuses one byte more ${how}`, async () => {
      const longer = { ...headers, ...('content-length' in headers ? { 'content-length': MAX_BODY_BYTES + 1 } : {}) };
      const answer = await ask(injector, { body: padded(MAX_BODY_BYTES + 1), headers: longer });
      assertRefused(answer, 413, /longer than 3145728 bytes/);
      assert.equal(answer.headers.connection, 'close');
    });
  }

  for (const [what, asked, code, message] of [
    ['another content type', { headers: { 'content-type': 'text/plain' }, body: reviewOf() }, 415, /application\/json/],
    [
      'a type that only begins alike',
      { headers: { 'content-type': 'application/jsonp' }, body: reviewOf() },
      415,
      /application\/json/,
    ],
    ['a content encoding', { headers: { 'content-encoding': 'gzip' }, body: reviewOf() }, 415, /content encoding/],
    ['truncated JSON', { body: bytesOf(reviewOf()).subarray(0, 700) }, 400, /well-formed JSON/],
    ['deep JSON', { body: Buffer.alloc(100_000, '[') }, 400, /nested deeper/],
    ['another kind', { body: { kind: 'Pod' } }, 400, /AdmissionReview/],
    ['a uid that is no text', { body: reviewOf({ uid: {} }) }, 400, /request\.uid/],
    ['another path', { path: '/validate', body: reviewOf() }, 404, /\/mutate/],
    ['another method', { method: 'PUT', body: reviewOf() }, 405, /POST/],
  ] as const)
    it(`refuses ${what} in words`, async () => {
      assertRefused(await ask(injector, asked), code, message);
    });

  it('takes a content type with a parameter', async () => {
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    assert.equal((await ask(injector, { body: reviewOf(), headers })).status, 200);
  });

  it('refuses a request that takes longer than two seconds, in words', async () => {
    const request = https.request({
      host: '127.0.0.1',
      port: injector.port,
      path: '/mutate',
      method: 'POST',
      ca: injector.authority.certificate,
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': 100 },
    });
    request.write('{');
    const since = performance.now();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    assertRefused(await answerOf(response), 408, /longer than 2000 ms/);
    assert.ok(performance.now() - since < 4_000);
    request.destroy();
  });

  it('refuses bytes that are no HTTP in words', async () => {
    const socket = connect({ host: '127.0.0.1', port: injector.port, ca: injector.authority.certificate });
    await once(socket, 'secureConnect');
    socket.end('no request\r\n\r\n');
    assert.match((await readAll(socket as never)).toString(), /^HTTP\/1\.1 400 .*no HTTP\/1\.1 request/s);
  });

  it('tells a client of plain HTTP that the port speaks TLS', async () => {
    const request = http.request({ host: '127.0.0.1', port: injector.port, path: '/mutate', method: 'POST' });
    request.end(bytesOf(reviewOf()));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    assertRefused(await answerOf(response), 400, /use https/);
  });

  it('closes a connection on which nothing comes, without an answer to nothing', async () => {
    const place = { host: '127.0.0.1', port: injector.port };
    const sockets = [connectPlain(place), connect({ ...place, ca: injector.authority.certificate })];
    for (const bytes of await Promise.all(sockets.map((socket) => readAll(socket as never))))
      assert.equal(bytes.length, 0);
  });

  it('holds no more than 8 MiB of bodies at a time', async () => {
    const parts = { path: '/mutate', method: 'POST', host: '127.0.0.1', port: injector.port, agent: false };
    const headers = { 'content-type': 'application/json', 'content-length': MAX_BODY_BYTES };
    const body = Buffer.alloc(MAX_BODY_BYTES - 1, ' ');
    const requests = Array.from({ length: 3 }, () =>
      https.request({ ...parts, headers, ca: injector.authority.certificate }).on('error', () => {}),
    );
    const first = Promise.race(requests.map((request) => once(request, 'response') as Promise<[IncomingMessage]>));
    for (const request of requests) request.write(body);
    assertRefused(await answerOf((await first)[0]), 503, /Too many reviews at a time/);
    const gone = requests.map((request) => new Promise((resolve) => request.once('close', resolve)));
    for (const request of requests) request.destroy();
    await Promise.all(gone);
    // Their memory is free again once the server has seen their ends.
    while ((await ask(injector, { body: padded(MAX_BODY_BYTES) })).status !== 200);
  });

  it('makes another key for the hooks of each pod', async () => {
    const keyOf = async () => {
      const { document } = await ask(injector, { body: reviewOf() });
      const patch = Buffer.from(document.response?.patch ?? '', 'base64').toString();
      return /"GATEWAY_HOOK_KEY","value":"([0-9a-f-]{36})"/.exec(patch)?.[1];
    };
    const [one, other] = [await keyOf(), await keyOf()];
    assert.ok(one !== undefined && other !== undefined && one !== other);
  });

  it('counts what it answered and what it refused', async () => {
    const counts = async () => (await injector.management('/metrics')).text;
    const countOf = (text: string, result: string) =>
      Number(new RegExp(`^acg_injector_reviews_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
    const earlier = await counts();
    await ask(injector, { body: reviewOf() });
    await ask(injector, { body: reviewOf({ namespace: 'kube-system' }) });
    await ask(injector, { body: {} });
    const later = await counts();
    for (const result of ['injected', 'passed', 'malformed'])
      assert.equal(countOf(later, result) - countOf(earlier, result), 1, result);
    assert.match(later, /^acg_injector_review_seconds_bucket\{result="injected",le="\+Inf"\} \d+$/m);
  });

  it('writes a line for each review', async () => {
    await ask(injector, { body: reviewOf({ uid: 'logged', dryRun: true }) });
    const { namespace, name, result, dryRun } = await injector.logged(({ uid }) => uid === 'logged');
    assert.deepEqual(
      { namespace, name, result, dryRun },
      { namespace: 'shop', name: 'w1', result: 'injected', dryRun: true },
    );
  });
});

function reviewUid(): string {
  return (reviewOf() as { request: { uid: string } }).request.uid;
}

describe('an injector that knows its clients', () => {
  const ends = new AsyncDisposableStack();
  const clients = createAuthority('clients');
  const { certificate: cert, key } = clients.issue();
  let injector: RunningInjector;
  before(async () => {
    injector = await startInjector(ends, { clients, clientName: 'localhost' });
  });
  after(() => ends.disposeAsync());

  it('answers the client whose certificate its authority signed', async () => {
    assert.equal((await ask(injector, { body: reviewOf(), tls: { cert, key } })).status, 200);
  });

  it('refuses a client without a certificate in words', async () => {
    assertRefused(await ask(injector, { body: reviewOf() }), 403, /none was shown/);
  });

  it('refuses a certificate that another authority of the same name signed, in words', async () => {
    const foreign = createAuthority('clients').issue();
    const tls = { cert: foreign.certificate, key: foreign.key };
    assertRefused(await ask(injector, { body: reviewOf(), tls }), 403, /not trusted/);
  });

  it('refuses it in words also when the request comes after the end of the handshake', async () => {
    const foreign = createAuthority('clients').issue();
    const place = { host: '127.0.0.1', port: injector.port, ca: injector.authority.certificate };
    const workerData = { ...place, cert: foreign.certificate, key: foreign.key };
    // The errors of OpenSSL are those of a thread: a client in this one would empty them.
    const client = new Worker(CLIENT, { eval: true, workerData });
    assert.match((await once(client, 'message'))[0], /^HTTP\/1\.1 403 .*not trusted/s);
  });

  it('refuses a certificate of another name in words', async () => {
    await using own = new AsyncDisposableStack();
    const strict = await startInjector(own, { clients, clientName: 'kube-apiserver' });
    assertRefused(await ask(strict, { body: reviewOf(), tls: { cert, key } }), 403, /another client/);
  });

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    it(`is not deceived by a session of ${version} that is taken up again`, async () => {
      const agent = new https.Agent({ maxCachedSessions: 10, maxVersion: version });
      for (let times = 0; times < 3; times += 1)
        assertRefused(await ask(injector, { body: reviewOf(), agent }), 403, /none was shown/);
      agent.destroy();
    });
});

/** Sends once the server has told its session, so after its handshake, and tells the answer. */
const CLIENT = `
  const { parentPort, workerData } = require('node:worker_threads');
  const socket = require('node:tls').connect(workerData);
  socket.once('session', () => socket.write('GET / HTTP/1.1\\r\\nhost: injector\\r\\nconnection: close\\r\\n\\r\\n'));
  let answer = '';
  socket.on('data', (bytes) => { answer += bytes; });
  socket.on('error', (error) => { answer += error; });
  socket.once('close', () => parentPort.postMessage(answer));
`;

describe('the connections of an injector', () => {
  it('are bounded: one too many is closed, and said', async () => {
    const { certificate, key } = createAuthority('injector').issue();
    const said = Promise.withResolvers<string>();
    const server = createInjectorServer({
      serving: { identity: readIdentity(certificate, key, Date.now()), clientAuthority: undefined },
      answer: () => '{}',
      onRefused: () => {},
      onHandshakeFailed: said.resolve,
      maxConnections: 2,
    });
    const { port } = await server.listen('127.0.0.1', 0);
    const place = { host: '127.0.0.1', port };
    const kept = [connectPlain(place), connectPlain(place)];
    await Promise.all(kept.map((socket) => once(socket, 'connect')));
    const surplus = connectPlain(place).on('error', () => {});
    await once(surplus, 'close');
    assert.equal(await said.promise, 'There are 2 connections already.');
    for (const socket of kept) socket.destroy();
    await server.close();
  });
});

describe('the end of an injector', () => {
  it('answers what runs, takes what still comes, and closes', async () => {
    await using ends = new AsyncDisposableStack();
    const injector = await startInjector(ends, { drainMs: 300 });
    assert.deepEqual(await injector.management('/ready'), { status: 200, text: 'ready\n' });
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
    assert.equal((await ask(injector, { body: reviewOf(), agent })).headers.connection, 'keep-alive');
    const late = https.request({
      host: '127.0.0.1',
      port: injector.port,
      path: '/mutate',
      method: 'POST',
      ca: injector.authority.certificate,
      agent: false,
      headers: { 'content-type': 'application/json' },
    });
    const answered = once(late, 'response') as Promise<[IncomingMessage]>;
    late.write(bytesOf(reviewOf()));

    const drained = injector.drain();
    assert.deepEqual(await injector.management('/ready'), { status: 503, text: 'draining\n' });
    assert.equal((await ask(injector, { body: reviewOf(), agent })).headers.connection, 'close');
    late.end();
    assert.equal((await answerOf((await answered)[0])).status, 200);
    await drained;
    await assert.rejects(ask(injector, { body: reviewOf() }), /ECONNREFUSED/);
    agent.destroy();
  });
});

describe('the second listener of an injector', () => {
  const ends = new AsyncDisposableStack();
  let injector: RunningInjector;
  before(async () => {
    injector = await startInjector(ends);
  });
  after(() => ends.disposeAsync());

  it('answers probes', async () => {
    assert.deepEqual(await injector.management('/healthz'), { status: 200, text: 'ok\n' });
    assert.deepEqual(await injector.management('/ready', 'HEAD'), { status: 200, text: '' });
  });

  it('changes nothing', async () => {
    assert.equal((await injector.management('/ready', 'POST')).status, 405);
    assert.equal((await injector.management('/mutate')).status, 404);
    assert.equal((await injector.management('/constructor')).status, 404);
  });

  it('tells when the certificate expires', async () => {
    const { text } = await injector.management('/metrics');
    const seconds = Number(/^acg_injector_certificate_expiry_seconds (\S+)$/m.exec(text)?.[1]);
    assert.ok(seconds > 86_000 && seconds < 86_500, `${seconds} s of a day`);
  });
});
