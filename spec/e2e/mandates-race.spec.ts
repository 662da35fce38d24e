import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createMint, type Mint } from '../support/ap2/mint.ts';
import { createBuyer } from '../support/buyer.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { CHANNELS, type Reply } from './mandate-channels.ts';
import { type MandateSeller, openMandateSeller, trusting } from './mandate-seller.ts';

const TOOL = 'market_report';
const INPUT = { city: 'Berlin' };
const AT_ONCE = 12;

describe('one mandate at two gateways that share a store', () => {
  let redis: TestRedis;
  let testbed: MandateSeller;
  let other: TestGateway;
  let mint: Mint;
  before(async () => {
    redis = await startRedis();
    mint = createMint();
    const storage = { redis: { url: redis.url } };
    testbed = await openMandateSeller([TOOL, 'free_market_report'], {}, { storage }, mint);
    const { payTo = '' } = testbed.gateway.config.x402 ?? {};
    other = await openGateway({
      ...{ chain: testbed.chain, backendUrl: testbed.backend.url, storage, payTo, facilitator: { mode: 'local' } },
      overrides: trusting(mint, [TOOL, 'free_market_report']),
    });
  });
  after(async () => {
    await other?.close();
    await testbed?.close();
    await redis?.stop();
  });

  const codes = (replies: readonly Reply[]): Readonly<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const { code = 'delivered' } of replies) counts[code] = (counts[code] ?? 0) + 1;
    return counts;
  };
  const gatewayAt = (at: number): TestGateway => (at % 2 === 0 ? testbed.gateway : other);

  it(`${AT_ONCE} payments at once under one mandate: one is settled, no other buyer pays`, async () => {
    const asked = await CHANNELS.http(testbed.gateway, { resourceId: TOOL, input: INPUT });
    const mandate = testbed.mandateFor(asked.body, {
      purchase: testbed.purchaseOf(TOOL, 'Market report', INPUT, '0.01'),
    });
    const buyers = [];
    for (let i = 0; i < AT_ONCE; i += 1) buyers.push(await createBuyer(testbed.chain));
    const proofs = await Promise.all(buyers.map((buyer) => buyer.pay(asked.body.payment?.envelope)));
    const before = await testbed.income();
    const replies = await Promise.all(
      proofs.map((proof, at) =>
        CHANNELS.http(gatewayAt(at), { resourceId: TOOL, input: INPUT, proof, mandate: mandate.header }),
      ),
    );
    assert.deepEqual(codes(replies), { delivered: 1, AUTHORIZATION_REPLAYED: AT_ONCE - 1 });
    assert.equal((await testbed.income()) - before, 10_000n);
    const paid = [];
    for (const [at, buyer] of buyers.entries()) if ((await buyer.balance()) !== 10_000_000n) paid.push(at);
    assert.deepEqual(paid, [replies.findIndex(({ code }) => code === undefined)]);
  });

  it('copies of one call share one mandate and one settlement', async () => {
    const asked = await CHANNELS.http(testbed.gateway, { resourceId: TOOL, input: INPUT });
    const mandate = testbed.mandateFor(asked.body, {
      purchase: testbed.purchaseOf(TOOL, 'Market report', INPUT, '0.01'),
    });
    const proof = await testbed.buyer.pay(asked.body.payment?.envelope);
    const before = await testbed.income();
    const headers = { 'idempotency-key': 'copies-of-one' };
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        CHANNELS.http(gatewayAt(at), { resourceId: TOOL, input: INPUT, proof, mandate: mandate.header, headers }),
      ),
    );
    assert.deepEqual(codes(replies), { delivered: 6 });
    assert.equal((await testbed.income()) - before, 10_000n);
    for (const reply of replies) assert.equal((await testbed.receiptOf(reply))['status'], 'Success');
  });

  it('copies of one payment that bring a mandate each use up one of them, and the others are as good as before', async () => {
    const call = { resourceId: TOOL, input: INPUT };
    const asked = await Promise.all(Array.from({ length: 6 }, () => CHANNELS.http(testbed.gateway, call)));
    const purchase = testbed.purchaseOf(TOOL, 'Market report', INPUT, '0.01');
    const mandates = asked.map(({ body }) => testbed.mandateFor(body, { purchase }).header);
    const proof = await testbed.buyer.pay(asked[0]?.body.payment?.envelope);
    const before = await testbed.income();
    const headers = { 'idempotency-key': 'copies-that-differ' };
    const copies = mandates.map((mandate, at) => CHANNELS.http(gatewayAt(at), { ...call, proof, mandate, headers }));
    const replies = await Promise.all(copies);
    assert.deepEqual(codes(replies), { delivered: 6 });
    assert.equal((await testbed.income()) - before, 10_000n);
    const counted = replies.map(({ receipt }) => receipt !== undefined);
    assert.equal(counted.filter(Boolean).length, 1, 'one of them is receipted');
    for (const [at, mandate] of mandates.entries()) {
      const other = await testbed.buyer.pay(asked[0]?.body.payment?.envelope);
      const { code } = await CHANNELS.http(gatewayAt(at), { ...call, proof: other, mandate });
      assert.equal(code, counted[at] === true ? 'AUTHORIZATION_REPLAYED' : undefined);
    }
  });
});
