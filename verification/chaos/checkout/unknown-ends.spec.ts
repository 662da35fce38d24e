import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startCheckoutBackend } from '../../../spec/support/acp/checkout-backend.ts';
import type { Fault } from '../../../spec/support/acp/faults.ts';
import { freePorts } from '../../../spec/support/ports.ts';
import { ask, assertKept, insist, said } from './agent.ts';
import { comeBack, fateOf } from './deaths.ts';
import { errandFor, KEYED_OPERATIONS } from './errand.ts';
import { type Ground, startGround } from './ground.ts';
import { startReplica } from './replica.ts';

const TIMEOUT_MS = 120_000;

/** Most of it is waiting for a merchant who hangs. */
const AT_ONCE = 4;

/** How the merchant fails, and what the agent is told at first. */
const FAILURES: readonly { readonly fault: Extract<Fault, { acts: boolean }>; readonly told: string }[] = [
  { fault: { kind: 'status', status: 500, acts: false }, told: '502 processing_error' },
  { fault: { kind: 'status', status: 500, acts: true }, told: '502 processing_error' },
  { fault: { kind: 'hang', acts: true }, told: '504 service_unavailable' },
  { fault: { kind: 'reset', acts: false }, told: '502 processing_error' },
  { fault: { kind: 'reset', acts: true }, told: '502 processing_error' },
];

/** acp 12.9: the merchant's backend leaves open whether the operation happened. */
describe('a checkout whose merchant fails', { concurrency: AT_ONCE, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let baseUrl: string;
  before(async () => {
    ground = await startGround();
    baseUrl = (await startReplica(ground)).baseUrl;
  });
  after(() => ground.stop());

  for (const { fault, told } of FAILURES)
    for (const operation of KEYED_OPERATIONS) {
      const fate = fateOf({ operation, at: fault.acts ? 'acted' : 'unacted' });
      it(`${operation} (${fault.kind} ${fault.acts ? 'after' : 'before'} acting): ${told}, then done, one answer, asked ${fate.asked}x`, async () => {
        const errand = await errandFor(ground, operation);
        ground.merchant.misbehave(fault, errand.aim);
        assert.equal(said(await ask(errand, baseUrl)), told);
        const other = { ...errand, body: { ...errand.body, order_notes: 'Another body.' } };
        assert.equal(said(await ask(other, baseUrl)), '422 idempotency_conflict');
        assert.deepEqual(await comeBack(ground, errand, fate, baseUrl), []);
      });
    }

  it('is asked for the first time when the merchant is back: a refused connection leaves nothing behind', async () => {
    const [port = 0] = await freePorts(1);
    const site = await ground.site({ store: 'redis', backendUrl: `http://127.0.0.1:${port}` });
    await site.start();
    const create = await errandFor(ground, 'createCheckoutSession');
    const complete = await errandFor(ground, 'completeCheckoutSession', 'cs_1');
    for (const errand of [create, complete])
      assert.equal(said(await ask(errand, site.baseUrl)), '502 processing_error');
    const backend = await startCheckoutBackend({ port, dedupe: false });
    ground.keep(backend.stop);
    for (const errand of [{ ...create, body: { ...create.body, currency: 'eur' } }, complete]) {
      const { answer, before: heard } = await insist(errand, site.baseUrl);
      assert.deepEqual([answer.status < 300, heard], [true, []]);
      await assertKept({ ...errand, operation: 'completeCheckoutSession' }, answer, site.baseUrl);
    }
    assert.deepEqual(
      [backend.calls.map(({ operation }) => operation), backend.allOrders()],
      [[create.operation, complete.operation], 1],
    );
  });
});
