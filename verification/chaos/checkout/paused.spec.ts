import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startCheckoutBackend } from '../../../spec/support/acp/checkout-backend.ts';
import type { KeyedOperation } from '../../../src/checkouts/operations.ts';
import type { CheckoutStep } from '../../../src/checkouts/steps.ts';
import { ask, assertKept, insist, said } from './agent.ts';
import { assertDone } from './deaths.ts';
import { errandFor } from './errand.ts';
import { type Ground, startGround } from './ground.ts';
import { startReplica } from './replica.ts';

const TIMEOUT_MS = 120_000;

interface Pause {
  readonly operation: KeyedOperation;
  readonly at: CheckoutStep;
  /** What its own agent hears when it goes on. */
  readonly late: string;
  /** How often the merchant is asked in the end. */
  readonly asked: number;
}

const PAUSES: readonly Pause[] = [
  // It looks at its lease before it sends.
  { operation: 'completeCheckoutSession', at: 'after_claim', late: '200', asked: 1 },
  { operation: 'completeCheckoutSession', at: 'after_merchant', late: '409 idempotency_in_flight', asked: 1 },
  // What it sends nobody holds back, but what it hears is not kept.
  { operation: 'cancelCheckoutSession', at: 'before_send', late: '409 idempotency_in_flight', asked: 2 },
];

/** acp 12.9: another gateway took over, and then the first one wakes up. */
describe('a gateway that stands still for longer than the lease of its checkout call', {
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
    it(`${operation} at "${at}": it has lost the call, one answer, the merchant asked ${asked}x`, async () => {
      const errand = await errandFor(ground, operation);
      const site = await ground.site({ store: 'redis' });
      const sleeper = await site.start({ at, signal: 'SIGSTOP' });
      const waiting = ask(errand, site.baseUrl);
      await sleeper.logged((line) => line['halt'] === at);

      const { answer, before: heard } = await insist(errand, replica);
      assert.deepEqual([answer.status, ...new Set(heard)], [200, '409 idempotency_in_flight']);
      assertDone(ground, errand, 1);

      process.kill(sleeper.pid, 'SIGCONT');
      const told = await waiting.catch(() => assert.fail(`it never answered:\n${sleeper.output()}`));
      assert.equal(said(told), late, told.text);
      if (told.status === 200) assert.equal(told.text, answer.text);
      await assertKept(errand, answer, site.baseUrl, replica);
      assertDone(ground, errand, asked);
    });

  it('completeCheckoutSession at "before_send" orders nothing more at a merchant who looks at the key', async () => {
    const backend = await startCheckoutBackend();
    ground.keep(backend.stop);
    const [frozen, other] = await Promise.all([
      ground.site({ store: 'redis', backendUrl: backend.url }),
      ground.site({ store: 'redis', backendUrl: backend.url }),
    ]);
    const [sleeper] = await Promise.all([frozen.start({ at: 'before_send', signal: 'SIGSTOP' }), other.start()]);
    const errand = await errandFor({ merchant: backend }, 'completeCheckoutSession');
    const waiting = ask(errand, frozen.baseUrl);
    await sleeper.logged((line) => line['halt'] === 'before_send');
    const { answer } = await insist(errand, other.baseUrl);
    process.kill(sleeper.pid, 'SIGCONT');
    assert.equal(said(await waiting), '409 idempotency_in_flight');
    await assertKept(errand, answer, frozen.baseUrl, other.baseUrl);
    assert.deepEqual([backend.posts(errand.sessionId ?? ''), backend.allOrders()], [2, 1]);
  });
});
