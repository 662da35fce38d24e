import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { eventsUntil, eventually } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { openTestbed } from '../support/testbed.ts';

/** Words that stand for secrets; none may come out anywhere but where it is meant to go. */
const CANARY = {
  bearer: 'canary-bearer-of-the-caller',
  mandate: 'canary-mandate-of-the-caller',
  cookie: 'canary-cookie-of-the-caller',
  query: 'canary-token-in-a-query',
  backendKey: 'canary-key-of-the-merchant',
  merchantBody: 'internal-detail',
} as const;

describe('secrets', () => {
  it('come out in no log line, event, receipt, error or stored value', async () => {
    const redis = await startRedis();
    const testbed = await openTestbed({
      storage: { redis: { url: redis.url } },
      overrides: { backend: { headers: { 'x-api-key': CANARY.backendKey } } },
    });
    try {
      const headers = {
        authorization: `Bearer ${CANARY.bearer}`,
        'agent-authorization': CANARY.mandate,
        cookie: `a=${CANARY.cookie}`,
      };
      const proof = await testbed.proof('failing', { status: 500 });
      const answers: string[] = [];
      const calls = [
        await testbed.gateway.invoke(
          'failing',
          { status: 500 },
          { ...headers, 'payment-signature': proof, 'x-request-id': 'canary' },
        ),
        await testbed.gateway.invoke('market_report', { city: 'Berlin' }, headers),
        await testbed.gateway.invoke(
          'market_report',
          { city: 'Berlin' },
          { ...headers, 'payment-signature': CANARY.bearer },
        ),
        await testbed.gateway.invoke('nowhere', {}, headers),
        await fetch(`${testbed.gateway.url}/api/events?token=${CANARY.query}`, { headers }),
        await testbed.gateway.operator('/api/receipts'),
      ];
      for (const call of calls) answers.push(await call.text(), JSON.stringify([...call.headers]));
      await eventsUntil(testbed.gateway, 'canary', 'backend.failed');
      answers.push(await (await testbed.gateway.operator('/api/events?limit=500')).text());
      const sent = testbed.backend.requests.find(({ url }) => url === '/fail/500');
      assert.equal(sent?.headers['x-api-key'], CANARY.backendKey, 'the merchant does get its own key');
      await eventually(
        async () =>
          testbed.gateway.logLines.filter((line) => line.includes('request completed')).length >= 6 ? true : undefined,
        'the log',
      );

      const stored = await everythingIn(redis.socketPath);
      const sinks = { answers: answers.join('\n'), log: testbed.gateway.logLines.join('\n'), store: stored };
      for (const [sink, text] of Object.entries(sinks)) {
        assert.ok(text.length > 200, `${sink} has something in it`);
        // The caller of a failed call gets the merchant's JSON, and nothing else keeps it.
        for (const [secret, word] of Object.entries({
          ...CANARY,
          operatorToken: OPERATOR_TOKEN,
          relayerKey: testbed.chain.relayerKey,
        }))
          assert.equal(text.includes(word), sink === 'answers' && secret === 'merchantBody', `${secret} in ${sink}`);
      }
      assert.ok(!sinks.log.includes(proof.slice(0, 40)), 'the proof is in the log');
    } finally {
      await testbed.close();
      await redis.stop();
    }
  });
});

/** All keys and values of a small store as text. */
async function everythingIn(socketPath: string): Promise<string> {
  const redis = new Redis({ path: socketPath });
  const read: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
    string: (key) => redis.get(key),
    zset: (key) => redis.zrange(key, '0', '-1'),
    stream: (key) => redis.xrange(key, '-', '+'),
  };
  const [, keys] = await redis.scan('0', 'COUNT', 10_000);
  const values = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key);
      assert.ok(read[type], `a ${type} is read here`);
      return [key, await read[type](key)];
    }),
  );
  await redis.quit();
  return JSON.stringify(values);
}
