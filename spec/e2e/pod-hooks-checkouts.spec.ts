import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { askAcp, assertAcpError, type CheckoutTestbed, openCheckoutTestbed } from '../adapters/acp/testbed.ts';
import { askHook } from '../support/hook.ts';

describe('a checkout call in the handshake', () => {
  let testbed: CheckoutTestbed;
  beforeEach(async () => {
    testbed = await openCheckoutTestbed();
  });
  afterEach(() => testbed.close());

  it('is answered with an Error document when it outlives the drain', async () => {
    const { gateway, backend } = testbed;
    backend.misbehave({ kind: 'hang', acts: false });
    const arrived = backend.arrived();
    const call = askAcp(gateway.url);
    await arrived;
    await gateway.drain(50);
    const answer = await call;
    assertAcpError(answer, answer.status, 'processing_error');
  });

  it('is held while the backend restarts, refused in vain, and never sent', async () => {
    const { gateway, backend } = testbed;
    await askHook(gateway.managementUrl, '/release');
    const began = performance.now();
    assertAcpError(await askAcp(gateway.url), 503, 'service_unavailable');
    assert.ok(performance.now() - began >= 1_950);
    assert.deepEqual(backend.calls, []);
  });
});
