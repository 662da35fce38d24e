import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { startRedis } from '../support/redis.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { type Canaries, everythingIn, filesIn, found, type Sinks } from './canary-sinks.ts';
import { decode } from './proofs.ts';

/** Its answer repeats the headers that the merchant was sent, and its input may be anything. */
const RESOURCE = 'request_headers';
const SEALING = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] };

/** A secret that stands nowhere else. */
const planted = (what: string): string => `planted-${what}-${randomBytes(12).toString('hex')}`;

interface Searched {
  /** What was looked for, and what there was to find it in. */
  readonly canaries: Canaries;
  readonly sinks: Sinks;
}

const UNPAID = 'the unpaid call';

/**
 * Buys, is answered again, is asked for another payment, and collects all that the store has of it
 * by then.
 */
async function afterPurchases(store: 'Redis' | 'SQLite', sealed: boolean): Promise<Searched> {
  const folder = mkdtempSync(join(tmpdir(), 'acg-at-rest-'));
  // What is compressed could not be searched.
  const redis = store === 'Redis' ? await startRedis({ args: ['--rdbcompression', 'no'] }) : undefined;
  const [input, answer, unpaid] = ['input', 'answer', 'unpaid'].map(planted) as [string, string, string];
  let testbed: Testbed | undefined;
  try {
    testbed = await openTestbed({
      storage: redis === undefined ? { sqlite: { path: join(folder, 'gateway.db') } } : { redis: { url: redis.url } },
      overrides: {
        backend: { headers: { 'x-of-the-merchant': answer } },
        ...(sealed ? { storage: { sealing: SEALING } } : {}),
      },
    });
    const proof = await testbed.proof(RESOURCE, { secret: input });
    const headers = { 'payment-signature': proof, 'idempotency-key': 'one-key-of-the-buyer' };
    const bodies: string[] = [];
    for (const _ of ['sold', 'given again']) {
      const delivered = await testbed.gateway.invoke(RESOURCE, { secret: input }, headers);
      assert.equal(delivered.status, 200);
      bodies.push(await delivered.text());
    }
    assert.ok(bodies[0]?.includes(answer), 'what is looked for was in the answer');
    assert.equal(bodies[1], bodies[0], 'what was kept is given again byte for byte');
    assert.equal((await testbed.gateway.invoke(RESOURCE, { secret: unpaid })).status, 402);
    const { signature } = (decode(proof) as { payload: { signature: string } }).payload;
    const sinks: Record<string, string> = {};
    if (redis !== undefined) {
      const admin = new Redis({ path: redis.socketPath });
      await admin.save();
      admin.disconnect();
      sinks['Redis'] = (await everythingIn(redis.socketPath, '')).join('\n');
    }
    for (const [name, text] of await filesIn(redis === undefined ? folder : dirname(redis.socketPath)))
      sinks[`the file ${name}`] = text;
    assert.ok(Object.values(sinks).join('').includes(testbed.buyer.address.toLowerCase()), 'the payment is in there');
    return {
      canaries: {
        'the input': input,
        'the answer': answer,
        // Nothing is kept for a caller that has not paid, with keys or without.
        [UNPAID]: unpaid,
        // Its two halves: the transaction has them apart from each other.
        'the signature, r': signature.slice(2, 66),
        'the signature, s': signature.slice(66, 130),
      },
      sinks,
    };
  } finally {
    await testbed?.close();
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const store of ['Redis', 'SQLite'] as const)
  describe(`what ${store} keeps of a payment, in its values and in its files`, () => {
    it('shows nothing of input, answer, signature and unpaid call where keys are configured', async () => {
      const { canaries, sinks } = await afterPurchases(store, true);
      assert.deepEqual(found(canaries, sinks), []);
    });

    it('shows all of it without keys but the unpaid call, so the search can find it', async () => {
      const { canaries, sinks } = await afterPurchases(store, false);
      const hits = found(canaries, sinks);
      for (const name of Object.keys(canaries).filter((name) => name !== UNPAID))
        assert.ok(
          hits.some((hit) => hit.startsWith(`${name} is in`)),
          `${name}: ${hits.join('; ')}`,
        );
      assert.ok(!hits.some((hit) => hit.startsWith(UNPAID)));
    });
  });
