import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startCheckoutBackend } from '../../../spec/support/acp/checkout-backend.ts';
import type { CheckoutStep } from '../../../src/checkouts/attempts.ts';
import type { KeyedOperation } from '../../../src/checkouts/operations.ts';
import { ask, assertDone, assertKept, insist, startReplica, summaryOf } from './deaths.ts';
import { callFor, type Ground, startGround } from './ground.ts';

const TIMEOUT_MS = 120_000;

interface Pause {
  readonly operation: KeyedOperation;
  readonly at: CheckoutStep;
  /** The answer of its own agent when it goes on. */
  readonly late: string;
  /** How often the backend is called in the end. */
  readonly asked: number;
}

const PAUSES: readonly Pause[] = [
  // It reads its lease before it sends.
  { operation: 'completeCheckoutSession', at: 'after_claim', late: '200', asked: 1 },
  { operation: 'completeCheckoutSession', at: 'after_merchant', late: '409 idempotency_in_flight', asked: 1 },
  // Its request still goes out, but the answer is not kept.
  { operation: 'cancelCheckoutSession', at: 'before_send', late: '409 idempotency_in_flight', asked: 2 },
];

/** acp 12.9: another gateway took over, and then the first one resumes. */
describe('a gateway that is paused for longer than the lease of its checkout call', {
  concurrency: true,
  timeout: TIMEOUT_MS,
}, () => {
  let ground: Ground;
  let replica: string;
  before(async () => {
    ground = await startGround();
    replica = (await startReplica(ground)).baseUrl;
  });
  after(() => ground.stop());

  for (const { operation, at, late, asked } of PAUSES)
    it(`${operation} at "${at}": it has lost the call, one answer, the backend called ${asked}x`, async () => {
      const call = await callFor(ground, operation);
      const site = await ground.site({ store: 'redis' });
      const sleeper = await site.start({ at, signal: 'SIGSTOP' });
      const waiting = ask(call, site.baseUrl);
      await sleeper.logged((line) => line['halt'] === at);

      const { answer, before: earlier } = await insist(call, replica);
      assert.deepEqual([answer.status, ...new Set(earlier)], [200, '409 idempotency_in_flight']);
      assertDone(ground, call, 1);

      process.kill(sleeper.pid, 'SIGCONT');
      const resumed = await waiting.catch(() => assert.fail(`it never answered:\n${sleeper.output()}`));
      assert.equal(summaryOf(resumed), late, resumed.text);
      if (resumed.status === 200) assert.equal(resumed.text, answer.text);
      await assertKept(call, answer, site.baseUrl, replica);
      assertDone(ground, call, asked);
    });

  it('completeCheckoutSession at "before_send" makes no second order at a backend that reads the key', async () => {
    const backend = await startCheckoutBackend();
    ground.keep(backend.stop);
    const [frozen, other] = await Promise.all([
      ground.site({ store: 'redis', backendUrl: backend.url }),
      ground.site({ store: 'redis', backendUrl: backend.url }),
    ]);
    const [sleeper] = await Promise.all([frozen.start({ at: 'before_send', signal: 'SIGSTOP' }), other.start()]);
    const call = await callFor({ backend }, 'completeCheckoutSession');
    const waiting = ask(call, frozen.baseUrl);
    await sleeper.logged((line) => line['halt'] === 'before_send');
    const { answer } = await insist(call, other.baseUrl);
    process.kill(sleeper.pid, 'SIGCONT');
    assert.equal(summaryOf(await waiting), '409 idempotency_in_flight');
    await assertKept(call, answer, frozen.baseUrl, other.baseUrl);
    assert.deepEqual([backend.posts(call.sessionId ?? ''), backend.allOrders()], [2, 1]);
  });
});
