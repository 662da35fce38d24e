import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Presentation } from '../support/ap2/wishes.ts';
import { CHANNELS } from './mandate-channels.ts';
import { INPUT, type MandateTestbed, openMandateTestbed, TOOL } from './mandate-testbed.ts';

for (const [channel, send] of Object.entries(CHANNELS))
  describe(`a payment that was admitted with a mandate, over ${channel}`, () => {
    let testbed: MandateTestbed;
    before(async () => {
      testbed = await openMandateTestbed(send);
    });
    after(() => testbed?.close());

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
