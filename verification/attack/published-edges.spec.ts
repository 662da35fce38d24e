import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe } from 'node:test';
import { Redis } from 'ioredis';
import { callTool } from '../../spec/adapters/mcp/post.ts';
import { startRedis, type TestRedis } from '../../spec/support/redis.ts';
import { openTestbed, type Testbed } from '../../spec/support/testbed.ts';
import { attack } from './catalogue.ts';
import { ALL_CHANNELS, buy } from './payments/channels.ts';

/**
 * Bytes of a body after which the answer must have arrived: the cap, and the buffers of both
 * kernels.
 */
const MOST_SENT_BYTES = 8_000_000;

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
