// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe } from 'node:test';
import { type RawBackend, rawBackend } from '../../../spec/backend/raw-backend.ts';
import { openGateway, type TestGateway } from '../../../spec/support/gateway.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { attack, proven } from '../catalogue.ts';
import { ALL_CHANNELS, buy, MESSAGE_CHANNELS } from '../payments/channels.ts';
import { wellFormed } from './stage.ts';

describe('a caller that tries to reach other paths or hosts', () => {
  let chain: Chain;
  let backend: RawBackend;
  let canary: RawBackend;
  let gateway: TestGateway;
  before(async () => {
    chain = await startChain();
    backend = await rawBackend((socket) => socket.write(wellFormed('{}')));
    canary = await rawBackend((socket) => socket.write(wellFormed('{}')));
    const value = { value: { type: 'string', maxLength: 200 } };
    const sold = (path: string, method = 'GET') => ({
      name: 'Target',
      inputSchema: { type: 'object', properties: value, required: ['value'] },
      backend: { method, path },
      pricing: { type: 'free' },
      expose: ['http', 'mcp', 'a2a'],
    });
    gateway = await openGateway({
      chain,
      backendUrl: `${backend.origin}/base`,
      facilitator: { mode: 'local' },
      overrides: {
        ...ALL_CHANNELS,
        resources: {
          at_end: sold('/a/{value}'),
        },
      },
    });
  });
  after(async () => {
    await gateway.close();
    await Promise.all([backend.close(), canary.close(), chain.stop()]);
  });

  /** Target and host of every request since then. */
  const targets = (since: number): readonly (readonly [target: string, host: string])[] =>
    backend.requests.slice(since).map(({ head }) => {
      const [line = '', ...fields] = head.split('\r\n');
      const target = /^GET (\S+) HTTP\/1\.1$/.exec(line)?.[1];
      assert.ok(target !== undefined, `${JSON.stringify(line)} is no request that was meant`);
      assert.ok(!fields.some((field) => /injected/i.test(field)), 'a header was injected');
      return [target, fields.find((field) => /^host:/i.test(field)) ?? ''];
    });

  proven('P1', 'spec/resources/backend-request.spec.ts', 'whatever the value');

  attack(['P3', 'I12'], 'no header of the caller changes the host or path of the backend', async () => {
    const { host } = new URL(canary.origin);
    const since = backend.requests.length;
    const names = ['x-forwarded-host', 'x-host', 'x-original-url', 'x-rewrite-url', 'forwarded', 'x-forwarded-server'];
    const headers = Object.fromEntries([...names.map((name) => [name, `host=${host}`]), ['host', host]]);
    for (const channel of MESSAGE_CHANNELS) {
      const seen = await buy(gateway.url, channel, { resourceId: 'at_end', input: { value: 'x' }, headers });
      assert.equal(seen.outcome, 'delivered');
    }
    for (const [target, to] of targets(since)) {
      assert.equal(target, '/base/a/x');
      assert.equal(to.toLowerCase(), `host: ${new URL(backend.origin).host}`);
    }
    assert.equal(backend.requests.length, since + MESSAGE_CHANNELS.length);
    assert.equal(canary.accepted(), 0);
  });

  const UPGRADES: readonly (readonly [what: string, fields: string])[] = [
    ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n'],
    ['h2c without its settings', 'Connection: Upgrade\r\nUpgrade: h2c\r\n'],
    [
      'WebSocket',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
    ],
    ['a protocol of its own', 'Connection: upgrade\r\nUpgrade: tunnel\r\n'],
  ];
  for (const [what, fields] of UPGRADES)
    attack('P7', `an upgrade to ${what}: no tunnel, and the backend receives nothing of it`, async () => {
      const since = backend.requests.length;
      const body = '{"value":"x"}';
      const head = `POST /api/resources/at_end/invoke HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
      const smuggled = 'GET /base/admin HTTP/1.1\r\nHost: merchant\r\nConnection: close\r\n\r\n';
      const text = await conversation(gateway.url, `${head}${fields}\r\n${body}${smuggled}`);
      assert.ok(!text.includes(' 101 '), text);
      assert.deepEqual(
        targets(since).map(([target]) => target),
        ['/base/a/x'],
      );
      for (const { head: seen } of backend.requests.slice(since)) assert.doesNotMatch(seen, /upgrade|http2|websocket/i);
      assert.equal(text.split('HTTP/1.1 200').length, 2, 'one answer, to the request that was priced');
    });

  attack('P7', 'CONNECT opens no tunnel', async () => {
    const since = backend.requests.length;
    const { host } = new URL(canary.origin);
    const text = await conversation(
      gateway.url,
      `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\nGET / HTTP/1.1\r\n\r\n`,
    );
    assert.doesNotMatch(text, /^HTTP\/1\.1 2/);
    assert.deepEqual([backend.requests.length, canary.accepted()], [since, 0]);
  });

  proven('P8', 'spec/e2e/relay.spec.ts', 'nothing of the caller but what is on the list reaches the merchant');
});

describe('a configuration that names a foreign backend', () => {
  const refusals = 'spec/config/refusals.spec.ts';
  proven('P4', refusals, 'the backend at ${url} even where others are allowed');
  proven('P4', refusals, 'the backend at ${url} where it is not allowed');
});

/** All bytes of the answer, until the gateway ends the connection or is silent for a while. */
const SILENCE_MS = 300;

async function conversation(base: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(base);
  const socket = connect(Number(port), hostname);
  socket.setEncoding('latin1').setTimeout(SILENCE_MS, () => socket.destroy());
  let text = '';
  socket.on('data', (piece: string) => {
    text += piece;
  });
  socket.on('error', () => undefined);
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return text;
}
