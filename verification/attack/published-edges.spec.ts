import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe } from 'node:test';
import { Redis } from 'ioredis';
import { callTool } from '../../spec/adapters/mcp/post.ts';
import { ask } from '../../spec/e2e/ask.ts';
import { startRedis, type TestRedis } from '../../spec/support/redis.ts';
import { openTestbed, type Testbed } from '../../spec/support/testbed.ts';
import { attack } from './catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS } from './payments/channels.ts';

/**
 * Bytes of a body after which the answer must have arrived: the cap, and the buffers of both
 * kernels.
 */
const MOST_SENT_BYTES = 8_000_000;
const LISTED_HOST = '127.0.0.1';

describe('published attacks on channels and libraries, as published', () => {
  let redis: TestRedis;
  let testbed: Testbed;
  before(async () => {
    redis = await startRedis();
    testbed = await openTestbed({ overrides: ALL_CHANNELS, storage: { redis: { url: redis.url } } });
  });
  after(async () => {
    await testbed.close();
    await redis.stop();
  });

  attack(
    ['I9', 'A5'],
    'CVE-2026-25536: concurrent clients with the same JSON-RPC id each get their own answer',
    async () => {
      const cities = Array.from({ length: 100 }, (_, n) => `City ${n}`);
      const answers = await Promise.all(
        cities.map((city) => callTool(testbed.gateway.url, 'free_market_report', { city })),
      );
      assert.deepEqual(
        answers.map(({ structuredContent }) => structuredContent?.['city']),
        cities,
      );
    },
  );

  attack(
    ['I10', 'H8'],
    'GHSA-w48q-cv73-mx4w, CVE-2026-34742: a page that rebinds its host name reaches no channel',
    async () => {
      const guarded = await openTestbed({ overrides: { ...ALL_CHANNELS, server: { allowedHosts: [LISTED_HOST] } } });
      try {
        for (const channel of CHANNELS)
          for (const headers of [
            { origin: 'http://evil.example' },
            { origin: 'null' },
            { host: 'evil.example' },
          ] as const) {
            const path = channel === 'http' ? '/api/resources/cities/invoke' : `/${channel}`;
            const sent = { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers } as Record<
              string,
              string
            >;
            const answer = await ask(guarded.gateway.url, { path, headers: sent, body: '{}' });
            assert.ok(
              [400, 403, 404, 421].includes(answer.status),
              `${channel} ${JSON.stringify(headers)}: ${answer.status}`,
            );
            assert.equal(answer.headers['access-control-allow-origin'], undefined);
          }
        assert.equal(guarded.backend.requests.length, 0);
      } finally {
        await guarded.close();
      }
    },
  );

  for (const path of ['/mcp', '/a2a', '/api/resources/cities/invoke'])
    attack(['I11', 'B1'], `CVE-2026-39313: a body without end to ${path} is refused and not read further`, async () => {
      const { hostname, port } = new URL(testbed.gateway.url);
      const socket = connect(Number(port), hostname);
      let text = '';
      let answered = false;
      socket.on('data', (piece) => {
        text += piece.toString();
        answered = true;
      });
      socket.on('error', () => undefined);
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      const piece = `2000\r\n${' '.repeat(0x2000)}\r\n`;
      let sent = 0;
      for (; !answered && sent < MOST_SENT_BYTES; sent += 0x2000)
        if (!socket.write(piece))
          await Promise.race([once(socket, 'drain'), once(socket, 'data'), once(socket, 'close')]);
        else await new Promise(setImmediate);
      assert.match(text, /^HTTP\/1\.1 413 /);
      socket.destroy();
    });

  attack(
    ['I12', 'P3', 'B10'],
    'CVE-2026-55602, -55603, CVE-2025-32996, -32997: no routing by Host, no body rewritten or sent twice',
    async () => {
      const { backend, gateway } = testbed;
      backend.forget();
      const spelled = '{ "b" : 1.0,\n  "a":"x\\u00e9" , "n":1E2}';
      for (const host of ['merchant.internal', 'localhost:1', '127.0.0.1.evil.example']) {
        const headers = { 'content-type': 'application/json', host };
        const answer = await ask(gateway.url, { path: '/api/resources/free_echo/invoke', headers, body: spelled });
        assert.deepEqual([answer.status, answer.text], [200, spelled]);
      }
      assert.deepEqual(
        backend.requests.map(({ body }) => body.toString()),
        [spelled, spelled, spelled],
      );
      const form = '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n';
      const headers = { 'content-type': 'multipart/form-data; boundary=x' };
      assert.equal(
        (await ask(gateway.url, { path: '/api/resources/free_echo/invoke', headers, body: form })).status,
        415,
      );
      const broken = { 'content-type': 'application/json' };
      assert.equal(
        (await ask(gateway.url, { path: '/api/resources/free_echo/invoke', headers: broken, body: '{"a":' })).status,
        400,
      );
      assert.equal(backend.requests.length, 3);
    },
  );

  attack(
    ['I13', 'O10'],
    'CVE-2025-49844: no input becomes a Redis script, and the set of scripts never changes',
    async () => {
      const client = new Redis(redis.socketPath);
      const scripts = async (): Promise<string> =>
        /number_of_cached_scripts:(\d+)/.exec(await client.info('memory'))?.[1] ?? '';
      try {
        const purchase = async (key: string): Promise<number> => {
          const proof = await testbed.proof('market_report', { city: 'Rome' });
          const headers = { 'idempotency-key': key };
          return (
            await buy(testbed.gateway.url, 'http', {
              resourceId: 'market_report',
              input: { city: 'Rome' },
              proof,
              headers,
            })
          ).status;
        };
        assert.equal(await purchase('a plain key'), 200);
        const before = await scripts();
        for (const key of ["'); redis.call('FLUSHALL') --", '"]] return 1 --[[', '{tag}} SLOT'])
          assert.ok([200, 400].includes(await purchase(key)), key);
        assert.equal(await scripts(), before);
        assert.ok((await client.dbsize()) > 0);
      } finally {
        await client.quit();
      }
    },
  );
});
