import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { closeOf, dial, envelopeOf, exchange, head, received, statusOf } from '../server/http/raw.ts';
import {
  accepting,
  type Merchant,
  openPassthroughTestbed,
  type PassthroughTestbed,
  startMerchant,
  until,
  WEBSOCKET,
} from './testbed.ts';

const PATIENCE = { timeout: 60_000 };
const IDLE_MS = 1_000;
/** One leg may outlast the other by so much, with some for a busy machine. */
const SOON_MS = 3_000;

const asking = (path: string, ...lines: readonly string[]): string =>
  head([`GET ${path} HTTP/1.1`, 'Host: shop.example', ...WEBSOCKET, ...lines]);
const [KEY_LINE = ''] = WEBSOCKET.slice(-1);

/** A text frame without a mask, as servers send it. */
const text = (payload: string): Buffer => Buffer.concat([Buffer.from([0x81, payload.length]), Buffer.from(payload)]);

describe('a passed WebSocket', () => {
  let merchant: Merchant;
  let testbed: PassthroughTestbed;
  /** The backend's connections, newest last. */
  let legs: { readonly req: IncomingMessage; readonly socket: Socket }[] = [];
  let onUpgrade: (req: IncomingMessage, socket: Socket) => void;
  const accept = (req: IncomingMessage, socket: Socket, ...lines: readonly string[]): void =>
    void socket.write(accepting(req, lines));
  before(async () => {
    merchant = await startMerchant((_req, res) => res.end('no upgrade'));
    merchant.server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
      socket.on('error', () => undefined).on('end', () => socket.end());
      legs.push({ req, socket });
      onUpgrade(req, socket);
    });
    testbed = await open();
  });
  const open = (overrides: object = {}): Promise<PassthroughTestbed> =>
    openPassthroughTestbed({
      backendUrl: merchant.url,
      passthrough: { idleTimeoutMs: IDLE_MS },
      overrides: { limits: { maxUpgrades: 3, ...overrides } },
    });
  after(async () => {
    await testbed.close();
    merchant.close();
    for (const { socket } of legs) socket.destroy();
  });
  afterEach(async () => {
    for (const { socket } of legs) socket.destroy();
    legs = [];
    while (!(await testbed.metric('acg_passthrough_upgrades_open')).endsWith(' 0'));
  });
  /** A WebSocket that is open, on bare connections. */
  async function opened(url = testbed.url) {
    onUpgrade = accept;
    const caller = await dial(url);
    const got = received(caller);
    caller.write(asking('/chat'));
    while (!got().includes('\r\n\r\n')) await once(caller, 'data');
    const leg = legs.at(-1);
    assert.ok(leg);
    leg.socket.resume();
    return { caller, got: () => got().slice(got().indexOf('\r\n\r\n') + 4), head: got(), backend: leg.socket };
  }

  it('carries text and bytes both ways with the WebSocket of Node', async () => {
    onUpgrade = (req, socket) => {
      accept(req, socket);
      socket.write(text('hello'));
      socket.once('data', () => socket.write(text('heard')));
    };
    const socket = new WebSocket(`${testbed.url.replace('http', 'ws')}/chat?room=1`);
    const messages: unknown[] = [];
    const both = new Promise<void>((resolve) => {
      socket.addEventListener('message', ({ data }) => {
        messages.push(data);
        if (messages.length === 2) resolve();
      });
    });
    await once(socket, 'open');
    socket.send('anyone?');
    await both;
    assert.deepEqual(messages, ['hello', 'heard']);
    assert.equal(legs[0]?.req.url, '/chat?room=1');
    socket.close();
  });

  it('shows the backend clean headers, and the caller an answer without those of payments', async () => {
    onUpgrade = (req, socket) => accept(req, socket, 'Payment-Response: forged', 'Sec-WebSocket-Protocol: chat');
    const caller = await dial(testbed.url);
    const got = received(caller);
    caller.write(
      asking('/chat', 'Payment-Signature: secret', 'X_Forwarded_For: 6.6.6.6', 'Cookie: a=b', 'X-Request-Id: mine'),
    );
    while (!got().includes('\r\n\r\n')) await once(caller, 'data');
    assert.match(got(), /^HTTP\/1\.1 101 /);
    assert.match(got(), /sec-websocket-protocol: chat\r\n/i);
    assert.match(got(), /x-request-id: mine\r\n/i);
    assert.doesNotMatch(got(), /forged/);
    const headers = legs[0]?.req.headers ?? {};
    assert.equal(headers['payment-signature'], undefined);
    assert.equal(headers['x_forwarded_for'], undefined);
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.equal(headers.cookie, 'a=b');
    assert.equal(headers['x-request-id'], 'mine');
    caller.destroy();
  });

  for (const [what, target, status, reason] of [
    ['sold', '/reports/berlin', 404, undefined],
    ['sold, spelled otherwise', '/x/../reports/berlin', 400, 'ambiguous_path'],
    ['of the gateway', '/api/resources', 400, 'no_upgrade'],
  ] as const)
    it(`is refused at a path that is ${what}, and what follows it is not served`, async () => {
      onUpgrade = accept;
      const got = await exchange(testbed.url, [
        asking(target) + head(['GET /free HTTP/1.1', 'Host: a', 'Connection: close']),
      ]);
      assert.equal(statusOf(got), status);
      assert.equal(envelopeOf(got)['reason'], reason);
      assert.equal(got.split('HTTP/1.1').length, 2);
      assert.equal(legs.length, 0);
    });

  for (const [what, request] of [
    ['of another version', asking('/chat').replace('Version: 13', 'Version: 8')],
    ['without a key', asking('/chat').replace(`${KEY_LINE}\r\n`, '')],
    ['with a key that is too short', asking('/chat').replace(KEY_LINE, 'Sec-WebSocket-Key: c2hvcnQ=')],
    ['with two keys', asking('/chat', KEY_LINE)],
    ['with a body', asking('/chat', 'Content-Length: 3')],
  ] as const)
    it(`is refused ${what}`, async () => {
      assert.equal(statusOf(await exchange(testbed.url, [request])), 400);
      assert.equal(legs.length, 0);
    });

  it('is a request like others if it is no GET, or asks for another protocol', async () => {
    for (const request of [
      asking('/free', 'Connection: close').replace('Upgrade: websocket', 'Upgrade: h2c'),
      asking('/free', 'Connection: close').replace('GET', 'POST'),
    ])
      assert.match(await exchange(testbed.url, [request]), /^HTTP\/1\.1 200 [\s\S]*no upgrade$/);
  });

  it('is answered 503 beyond the most that are open', async () => {
    const three = [await opened(), await opened(), await opened()];
    const fourth = await exchange(testbed.url, [asking('/chat')]);
    assert.equal(statusOf(fourth), 503);
    assert.match(fourth, /retry-after: 1\r\n/);
    for (const { caller } of three) caller.destroy();
  });

  it('relays an answer that declines it, and ends', async () => {
    onUpgrade = (_req, socket) =>
      void socket.end('HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 4\r\n\r\nwho?');
    const got = await exchange(testbed.url, [asking('/chat')]);
    assert.equal(statusOf(got), 401);
    assert.match(got, /www-authenticate: Basic\r\n[\s\S]*who\?$/i);
  });

  it('is answered 502 when the backend accepts another key, asks for a payment, or goes away', async () => {
    for (const answer of [
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: no\r\n\r\n',
      'HTTP/1.1 402 Payment Required\r\nContent-Length: 0\r\n\r\n',
      '',
    ]) {
      onUpgrade = (_req, socket) => void socket.end(answer);
      const got = await exchange(testbed.url, [asking('/chat')]);
      assert.equal(statusOf(got), 502, answer);
      assert.equal(envelopeOf(got)['code'], 'BACKEND_ERROR');
    }
  });

  it('ends at the backend when its caller is gone, and at the caller when its backend is', async () => {
    const first = await opened();
    const since = performance.now();
    first.caller.resetAndDestroy();
    await closeOf(first.backend);
    const second = await opened();
    second.backend.resetAndDestroy();
    await closeOf(second.caller);
    const third = await opened();
    // The caller ends its half alone.
    third.backend.end();
    await closeOf(third.caller);
    assert.ok(performance.now() - since < SOON_MS, `${performance.now() - since} ms`);
  });

  it('ends when no byte moves, and not while some do', PATIENCE, async () => {
    const { caller, backend, got } = await opened();
    for (let beat = 0; beat < 6; beat += 1) {
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS / 3));
      backend.write(text('x'));
    }
    assert.ok(got().length > 0);
    assert.equal(caller.destroyed, false);
    await Promise.all([closeOf(caller), closeOf(backend)]);
  });

  it('ends with 504 when the backend does not answer the handshake', PATIENCE, async () => {
    onUpgrade = () => undefined;
    const got = await exchange(testbed.url, [asking('/chat')]);
    assert.equal(statusOf(got), 504);
  });

  it('is closed when the process drains, and a handshake on its way is answered 503', PATIENCE, async () => {
    await using draining = await open();
    const { caller, backend, got } = await opened(draining.url);
    backend.write(text('last'));
    while (got() === '') await once(caller, 'data');
    onUpgrade = () => undefined;
    const asked = exchange(draining.url, [asking('/chat')]);
    await until(() => legs.length === 2);
    const drain = draining.gateway.drain(10_000);
    await Promise.all([closeOf(caller), closeOf(backend)]);
    assert.equal(got(), text('last').toString('latin1'));
    assert.equal(statusOf(await asked), 503);
    assert.equal(statusOf(await exchange(draining.url, [asking('/chat')]).catch(() => '')) || 503, 503);
    await drain;
  });

  it('does not end the process when a connection of it is reset', async () => {
    onUpgrade = (_req, socket) => void socket.resetAndDestroy();
    assert.equal(statusOf(await exchange(testbed.url, [asking('/chat')])), 502);
    const { caller, backend } = await opened();
    caller.resetAndDestroy();
    backend.resetAndDestroy();
    assert.equal((await fetch(`${testbed.url}/free`)).status, 200);
  });

  it('is opened behind the answer of a request before it on its connection', async () => {
    onUpgrade = accept;
    const socket = await dial(testbed.url);
    const text = received(socket);
    socket.write(head(['GET /free HTTP/1.1', 'Host: a']) + asking('/chat'));
    while (!text().includes('101 Switching')) await once(socket, 'data');
    assert.match(text(), /^HTTP\/1\.1 200 [\s\S]*no upgradeHTTP\/1\.1 101 Switching/);
    socket.destroy();
  });

  it('writes a line and counts in the metrics', async () => {
    const { caller } = await opened();
    caller.destroy();
    let line: Readonly<Record<string, unknown>> | undefined;
    for (let count = 1; line === undefined; count += 1)
      line = (await testbed.passedLines(count)).find(({ end, path }) => end === 'closed' && path === '/chat');
    assert.equal(line['status'], 101);
    assert.match(await testbed.metric('acg_passthrough_upgrades_total{end="closed"}'), / [1-9]\d*$/);
  });
});
