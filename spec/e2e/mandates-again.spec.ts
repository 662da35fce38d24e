import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Presentation } from '../support/ap2/wishes.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { CHANNELS } from './mandate-channels.ts';
import { INPUT, leaf, type MandateTestbed, openMandateTestbed, TOOL } from './mandate-testbed.ts';

for (const [channel, send] of Object.entries(CHANNELS))
  describe(`a payment that was admitted with a mandate, over ${channel}`, () => {
    let testbed: MandateTestbed;
    before(async () => {
      testbed = await openMandateTestbed(send);
    });
    after(() => testbed?.close());

    it('what was paid for is collected without a second mandate', async () => {
      const input = { failures: 1 };
      const asked = await testbed.send({ resourceId: 'flaky', input });
      const proof = await testbed.buyer.pay(asked.body.payment?.envelope);
      const before = await testbed.buyer.balance();
      const flaky = testbed.purchaseOf('flaky', 'Flaky', input, '0.001');
      const mandate = testbed.mandateFor(asked.body, { purchase: flaky, payment: true });
      const failed = await testbed.send({ resourceId: 'flaky', input, proof, mandate: mandate.header });
      assert.equal(failed.code, 'BACKEND_ERROR', failed.raw);
      assert.equal((await testbed.receiptOf(failed))['status'], 'Success', 'the mandate was used');
      const collected = await testbed.send({ resourceId: 'flaky', input, proof });
      assert.equal(collected.code, undefined, collected.raw);
      assert.equal(collected.receipt, undefined, 'no mandate came, so none is receipted');
      assert.equal(before - (await testbed.buyer.balance()), 1_000n);
      const events = await eventsUntil(testbed.gateway, collected.requestId, 'resource.delivered');
      assert.ok(!events.some(({ type }) => type.startsWith('authorization.')));
      const { authorization } = await receiptWhen(testbed.gateway, collected.requestId, true);
      assert.equal(authorization?.reference, leaf(mandate));
    });

    it('an answer is given again to its key, whatever became of the mandate', async () => {
      const headers = { 'idempotency-key': `again-${channel}` };
      const asked = await testbed.challenged();
      const call = { resourceId: TOOL, input: INPUT, headers, proof: await testbed.proofFor(asked) };
      const mandate = testbed.mandateFor(asked, testbed.pays());
      const first = await testbed.send({ ...call, mandate: mandate.header });
      assert.equal(first.code, undefined, first.raw);
      const before = await testbed.buyer.balance();
      for (const other of [undefined, mandate.header, Buffer.from('{}').toString('base64url')]) {
        const again = await testbed.send({ ...call, ...(other === undefined ? {} : { mandate: other }) });
        assert.equal(again.code, undefined, again.raw);
        assert.equal(again.body['city'], 'Berlin');
        if (other === mandate.header)
          assert.equal((await testbed.receiptOf(again))['reference'], leaf(mandate), 'it is the one that counted');
        else assert.equal(again.receipt, undefined);
      }
      assert.equal(await testbed.buyer.balance(), before);
    });

    it('what was added to a mandate after it was checked is not receipted as accepted', async () => {
      const headers = { 'idempotency-key': `added-${channel}` };
      const asked = await testbed.challenged();
      const call = { resourceId: TOOL, input: INPUT, headers, proof: await testbed.proofFor(asked) };
      const mandate = testbed.mandateFor(asked, testbed.pays());
      assert.equal((await testbed.send({ ...call, mandate: mandate.header })).code, undefined);
      const again = await testbed.send({ ...call, mandate: withAnotherDisclosure(mandate) });
      assert.deepEqual([again.code, again.receipt], [undefined, undefined], again.raw);
    });
  });

/**
 * The same leaf with an unsigned disclosure: it has the reference of the right one.
 */
function withAnotherDisclosure({ payload }: Presentation): string {
  const added = Buffer.from(JSON.stringify(['salt', 'granted', 'everything'])).toString('base64url');
  return Buffer.from(JSON.stringify({ method: 'ap2', payload: `${payload}${added}~` })).toString('base64url');
}
