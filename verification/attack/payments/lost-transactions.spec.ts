import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { privateKeyToAddress } from 'viem/accounts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack } from '../catalogue.ts';
import { buy } from './channels.ts';

const RESOURCE = { resourceId: 'market_report', input: { city: 'Berlin' } };
/** How long the next buyer may wait, milliseconds. */
const SOON_MS = 3_000;

describe('a chain that has lost a transaction of the relayer', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  attack('X15', 'the next buyer is still served: the nonces of the relayer have no gap', async () => {
    const purchase = async () =>
      buy(testbed.gateway.url, 'http', { ...RESOURCE, proof: await testbed.proof('market_report', RESOURCE.input) });
    const snapshot = await testbed.chain.request('evm_snapshot', []);
    assert.equal((await purchase()).outcome, 'delivered');
    await testbed.chain.request('evm_revert', [snapshot]);
    const begun = performance.now();
    const next = purchase();
    await Promise.race([next, delay(SOON_MS, undefined, { ref: false })]);
    const tookMs = performance.now() - begun;
    if (tookMs >= SOON_MS) {
      // Sends the missing transaction, so that the call can end.
      const relayer = privateKeyToAddress(testbed.chain.relayerKey);
      await testbed.chain.send(relayer, relayer, '0x');
    }
    assert.equal((await next).outcome, 'delivered');
    assert.ok(tookMs < SOON_MS, 'its transaction waited behind the lost one');
  });
});
