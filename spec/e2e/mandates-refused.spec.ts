import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createBuyer } from '../support/buyer.ts';
import { eventsUntil } from '../support/records.ts';
import { CHANNELS } from './mandate-channels.ts';
import { INPUT, leaf, type MandateTestbed, now, openMandateTestbed, PRICE_UNITS, TOOL } from './mandate-testbed.ts';

for (const [channel, send] of Object.entries(CHANNELS))
  describe(`a mandate that is refused, over ${channel}`, () => {
    let testbed: MandateTestbed;
    before(async () => {
      testbed = await openMandateTestbed(send);
    });
    after(() => testbed?.close());

    it('the same mandate buys once; the second payment is not touched and buys with another', async () => {
      const asked = await testbed.challenged();
      const mandate = testbed.mandateFor(asked, testbed.pays());
      const call = { resourceId: TOOL, input: INPUT, mandate: mandate.header };
      const first = await testbed.send({ ...call, proof: await testbed.proofFor(asked) });
      assert.equal(first.code, undefined, first.raw);
      const before = await testbed.buyer.balance();
      const proof = await testbed.proofFor(await testbed.challenged());
      const second = await testbed.send({ ...call, proof });
      assert.equal(second.code, 'AUTHORIZATION_REPLAYED', second.raw);
      assert.equal(second.body.details?.['reason'], 'replayed');
      assert.equal(await testbed.buyer.balance(), before);
      const claims = await testbed.receiptOf(second);
      assert.deepEqual(
        [claims['status'], claims['error'], claims['error_description'], claims['reference'], claims['order_id']],
        ['Error', 'invalid_mandate', 'replayed', leaf(mandate), undefined],
      );
      assert.equal(second.body.details['receipt'], second.receipt);
      const other = testbed.mandateFor(second.body, testbed.pays()).header;
      const bought = await testbed.send({ resourceId: TOOL, input: INPUT, proof, mandate: other });
      assert.equal(bought.code, undefined, bought.raw);
      assert.equal(before - (await testbed.buyer.balance()), PRICE_UNITS);
    });

    it('one open mandate, closed twice, buys once', async () => {
      const asked = await testbed.challenged();
      const wishes = { now: now(), profile: testbed.profile, ...testbed.pays() };
      const open = testbed.mint.open(wishes);
      const close = (body: typeof asked): string =>
        testbed.mint.close(open, { ...wishes, checkoutJwt: body.authorization?.required[0].checkoutJwt ?? '' }).header;
      const call = { resourceId: TOOL, input: INPUT };
      const first = await testbed.send({ ...call, proof: await testbed.proofFor(asked), mandate: close(asked) });
      assert.equal(first.code, undefined, first.raw);
      const again = await testbed.challenged();
      const before = await testbed.buyer.balance();
      const second = await testbed.send({ ...call, proof: await testbed.proofFor(again), mandate: close(again) });
      assert.deepEqual(
        [second.code, second.body.details?.['reason']],
        ['AUTHORIZATION_REPLAYED', 'open_mandate_spent'],
      );
      assert.equal(await testbed.buyer.balance(), before);
    });

    it('a payment of a buyer without funds releases its mandate', async () => {
      const asked = await testbed.challenged();
      // Names no payer, so that another buyer can pay.
      const mandate = testbed.mandateFor(asked, { purchase: testbed.report() }).header;
      const call = { resourceId: TOOL, input: INPUT, mandate };
      const poor = await createBuyer(testbed.chain, 0n);
      const refused = await testbed.send({ ...call, proof: await poor.pay(asked.payment?.envelope) });
      assert.deepEqual([refused.code, refused.receipt], ['PAYMENT_REQUIRED', undefined], refused.raw);
      assert.ok(refused.body.authorization, 'a fresh challenge, for both');
      const events = await eventsUntil(testbed.gateway, refused.requestId, 'payment.required');
      const types = ['resource.requested', 'authorization.verified', 'payment.rejected', 'payment.required'];
      assert.deepEqual(
        events.map(({ type }) => type),
        types,
      );
      const bought = await testbed.send({ ...call, proof: await testbed.proofFor(asked) });
      assert.equal(bought.code, undefined, bought.raw);
    });
  });
