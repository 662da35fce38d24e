import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { type Brought, bring, failure, read, replayed } from './bring.ts';
import { decode, encode, named } from './proofs.ts';

const INPUT = { city: 'Berlin' };
const KEY = 'a secret key of the buyer';
const IDENTIFIER = 'identifier_of-the-buyer_0001';

/**
 * Everything of an answer that the caller can see, but for what names the request or the moment.
 */
function visible({ status, headers, bytes }: Brought): unknown {
  const own = new Set(['x-request-id', 'date', 'idempotent-replayed', 'content-length', 'transfer-encoding']);
  const shown = [...headers].filter(([name]) => !own.has(name));
  return { status, headers: Object.fromEntries(shown), bytes: bytes.toString('base64') };
}

const redis = await startRedis();
after(() => redis.stop());

for (const [store, storage] of Object.entries({
  SQLite: { sqlite: { path: ':memory:' } },
  Redis: { redis: { url: redis.url } },
}))
  describe(`a key opens the answer that was paid for, on ${store}`, () => {
    let testbed: Testbed;
    before(async () => {
      testbed = await openTestbed({ storage });
    });
    after(() => testbed.close());

    const answers: readonly (readonly [string, string, unknown])[] = [
      ['JSON', 'market_report', INPUT],
      ['every header that may be relayed', 'noisy', {}],
      ['binary of the largest size that is stored', 'bytes', { size: 262_144 }],
      ['binary without a length', 'bytes', { size: 100_000, undeclared: true }],
    ];
    for (const [what, id, input] of answers)
      it(`${what}: status, headers, body and PAYMENT-RESPONSE are equal, no money moves, no call is made`, async () => {
        const proof = await testbed.proof(id, input);
        const first = await bring(testbed.gateway, id, input, { proof, key: KEY });
        assert.ok(first.status === 200 || first.status === 204, first.bytes.toString());
        assert.equal(first.headers.get('idempotent-replayed'), null);
        await receiptWhen(testbed.gateway, first.requestId, true);
        const income = await testbed.income();
        testbed.backend.forget();
        const again = await bring(testbed.gateway, id, input, { proof, key: KEY });
        assert.deepEqual(visible(again), visible(first));
        assert.equal(again.headers.get('idempotent-replayed'), 'true');
        assert.notEqual(again.requestId, first.requestId);
        assert.equal(again.payment?.requestId, first.requestId, 'the payment of the first call');
        assert.equal(await testbed.income(), income);
        assert.equal(testbed.backend.requests.length, 0);
      });

    it('one byte above the largest size is delivered and not stored: 409', async () => {
      const input = { size: 262_145 };
      const proof = await testbed.proof('bytes', input);
      const first = await bring(testbed.gateway, 'bytes', input, { proof, key: KEY });
      assert.deepEqual([first.status, first.bytes.length], [200, 262_145]);
      await receiptWhen(testbed.gateway, first.requestId, true);
      replayed(await bring(testbed.gateway, 'bytes', input, { proof, key: KEY }), 'delivered');
    });

    it('the payment-identifier of the proof is a key, and equal to the header of the same text', async () => {
      const proof = named(await testbed.proof('market_report', INPUT), IDENTIFIER);
      const first = await bring(testbed.gateway, 'market_report', INPUT, { proof });
      await receiptWhen(testbed.gateway, first.requestId, true);
      const bare = encode({ ...decode(proof), extensions: {} });
      for (const way of [{ proof }, { proof: bare, key: IDENTIFIER }, { proof, key: IDENTIFIER }]) {
        const again = await bring(testbed.gateway, 'market_report', INPUT, way);
        assert.deepEqual(visible(again), visible(first));
      }
      replayed(await bring(testbed.gateway, 'market_report', INPUT, { proof: bare }), 'delivered');
      replayed(
        await bring(testbed.gateway, 'market_report', INPUT, { proof: named(proof, 'x'.repeat(16)) }),
        'delivered',
      );
    });

    it('a stored answer is one event, resource.requested, and no second receipt', async () => {
      const proof = await testbed.proof('market_report', INPUT);
      const first = await bring(testbed.gateway, 'market_report', INPUT, { proof, key: KEY });
      const receipt = await receiptWhen(testbed.gateway, first.requestId, true);
      const again = await bring(testbed.gateway, 'market_report', INPUT, { proof, key: KEY });
      const events = await eventsUntil(testbed.gateway, again.requestId, 'resource.requested');
      assert.deepEqual(
        events.map(({ type }) => type),
        ['resource.requested'],
      );
      const answer = await testbed.gateway.operator(`/api/receipts?requestId=${again.requestId}`);
      assert.deepEqual(((await answer.json()) as { receipts: Receipt[] }).receipts, []);
      assert.deepEqual(await receiptWhen(testbed.gateway, first.requestId, true), receipt, 'unchanged');
    });

    it('is a secret: not in the log, the events, the receipts, the store or an answer', async () => {
      const key = 'never-to-be-seen-again-5f1c';
      const proof = await testbed.proof('market_report', INPUT);
      const first = await bring(testbed.gateway, 'market_report', INPUT, { proof, key });
      await receiptWhen(testbed.gateway, first.requestId, true);
      const again = await bring(testbed.gateway, 'market_report', INPUT, { proof, key });
      const refused = await bring(testbed.gateway, 'market_report', INPUT, { proof: named(proof, IDENTIFIER), key });
      failure(refused, 400, 'INPUT_INVALID');
      const { events } = await testbed.gateway.store.feed.page({ limit: 500 });
      const { receipts } = await testbed.gateway.store.receipts.page({ limit: 500 });
      const receipt = receipts.find(({ requestId }) => requestId === first.requestId);
      const record = await testbed.gateway.store.ledger.read(receipt?.payment?.replayKey ?? '');
      assert.ok(record !== undefined && again.status === 200);
      const sent = [first, again, refused].map((answer) => [...answer.headers, answer.bytes.toString()]);
      const shown = JSON.stringify([testbed.gateway.logLines, events, receipts, record, sent]);
      assert.ok(!shown.includes(key));
      assert.ok(testbed.gateway.logLines.length > 0 && shown.includes(record.keyDigest ?? 'none'));
    });

    it('is ignored on a free resource: every call is a call', async () => {
      testbed.backend.forget();
      for (let call = 0; call < 2; call += 1) {
        const answer = await read(
          await testbed.gateway.invoke('free_market_report', INPUT, { 'idempotency-key': KEY }),
        );
        assert.deepEqual([answer.status, answer.headers.get('idempotent-replayed')], [200, null]);
      }
      assert.equal(testbed.backend.requests.length, 2);
    });
  });
