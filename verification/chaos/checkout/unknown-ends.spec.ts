import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startCheckoutBackend } from '../../../spec/support/acp/checkout-backend.ts';
import type { Fault } from '../../../spec/support/acp/faults.ts';
import { freePorts } from '../../../spec/support/ports.ts';
import { ask, assertKept, insist, summaryOf } from './agent.ts';
import { comeBack, fateOf } from './deaths.ts';
import { type Ground, startGround } from './ground.ts';
import { callFor, KEYED_OPERATIONS } from './keyed-call.ts';
import { startReplica } from './replica.ts';

const TIMEOUT_MS = 120_000;

/** Most of the time is waiting for a backend that hangs. */
const AT_ONCE = 4;

/** How the backend fails, and the agent's first answer. */
const FAILURES: readonly { readonly fault: Extract<Fault, { acts: boolean }>; readonly outcome: string }[] = [
  { fault: { kind: 'status', status: 500, acts: false }, outcome: '502 processing_error' },
  { fault: { kind: 'status', status: 500, acts: true }, outcome: '502 processing_error' },
  { fault: { kind: 'hang', acts: true }, outcome: '504 service_unavailable' },
  { fault: { kind: 'reset', acts: false }, outcome: '502 processing_error' },
  { fault: { kind: 'reset', acts: true }, outcome: '502 processing_error' },
];

/** acp 12.9: the backend leaves open whether the operation happened. */
describe('a checkout whose backend fails', { concurrency: AT_ONCE, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let baseUrl: string;
  before(async () => {
    ground = await startGround();
    baseUrl = (await startReplica(ground)).baseUrl;
  });
  after(() => ground.stop());

  for (const { fault, outcome } of FAILURES)
    for (const operation of KEYED_OPERATIONS) {
      const fate = fateOf({ operation, at: fault.acts ? 'acted' : 'unacted' });
      it(`${operation} (${fault.kind} ${fault.acts ? 'after' : 'before'} acting): ${outcome}, then done, one answer, the backend called ${fate.asked}x`, async () => {
        const call = await callFor(ground, operation);
        ground.backend.misbehave(fault, call.aim);
        assert.equal(summaryOf(await ask(call, baseUrl)), outcome);
        const other = { ...call, body: { ...call.body, order_notes: 'Another body.' } };
        assert.equal(summaryOf(await ask(other, baseUrl)), '422 idempotency_conflict');
        assert.deepEqual(await comeBack(ground, call, fate, baseUrl), []);
      });
    }

  it('is sent for the first time when the backend is up again: a refused connection leaves no claim', async () => {
    const [port = 0] = await freePorts(1);
    const site = await ground.site({ store: 'redis', backendUrl: `http://127.0.0.1:${port}` });
    await site.start();
    const create = await callFor(ground, 'createCheckoutSession');
    const complete = await callFor(ground, 'completeCheckoutSession', 'cs_1');
    for (const call of [create, complete])
      assert.equal(summaryOf(await ask(call, site.baseUrl)), '502 processing_error');
    const backend = await startCheckoutBackend({ port, dedupe: false });
    ground.keep(backend.stop);
    for (const call of [{ ...create, body: { ...create.body, currency: 'eur' } }, complete]) {
      const { answer, before: earlier } = await insist(call, site.baseUrl);
      assert.deepEqual([answer.status < 300, earlier], [true, []]);
      await assertKept({ ...call, operation: 'completeCheckoutSession' }, answer, site.baseUrl);
    }
    assert.deepEqual(
      [backend.calls.map(({ operation }) => operation), backend.allOrders()],
      [[create.operation, complete.operation], 1],
    );
  });
});
