import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { CheckoutStep } from '../../../src/checkouts/attempts.ts';
import { comeBack, type Death, dieAt, dieAtBackend, fateOf, startReplica } from './deaths.ts';
import { callFor, type Ground, startGround } from './ground.ts';

/** Most of the time is waiting for a lease to end. */
const AT_ONCE = 6;
/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 120_000;
const IN_FLIGHT = '409 idempotency_in_flight';

const DEATHS: readonly Death<Exclude<CheckoutStep, 'after_read'>>[] = [
  ...(['before_claim', 'after_claim', 'before_send', 'after_merchant', 'after_finish'] as const).map(
    (at) => ({ operation: 'completeCheckoutSession', at }) as const,
  ),
  ...(['cancelCheckoutSession', 'createCheckoutSession'] as const).flatMap((operation) =>
    (['after_claim', 'after_merchant', 'after_finish'] as const).map((at) => ({ operation, at })),
  ),
];

/** acp 12.9: a gateway on Redis dies, and the agent repeats the call at its replica. */
describe('a checkout whose gateway on Redis dies', { concurrency: AT_ONCE, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let replica: string;
  before(async () => {
    ground = await startGround();
    replica = (await startReplica(ground)).baseUrl;
  });
  after(() => ground.stop());

  for (const death of DEATHS) {
    const { operation, at } = death;
    const fate = fateOf(death);
    const then = fate.kept ? 'a replay at once' : fate.waits ? '409 until the lease ends' : 'a first call';
    it(`${operation} at "${at}": ${then}, one answer, the backend called ${fate.asked}x`, async () => {
      const call = await callFor(ground, operation);
      await dieAt(call, await ground.site(), at);
      const earlier = await comeBack(ground, call, fate, replica);
      assert.deepEqual([...new Set(earlier)], fate.waits ? [IN_FLIGHT] : []);
    });
  }

  it('with calls of every operation at the backend: 409 until the leases end, one answer each, complete and cancel read back', async () => {
    const calls = await dieAtBackend(ground, await ground.site());
    await Promise.all(
      [...calls].map(async ([death, call]) => {
        const earlier = await comeBack(ground, call, fateOf(death), replica);
        assert.deepEqual([...new Set(earlier)], [IN_FLIGHT]);
      }),
    );
  });

  it('complete at "after_merchant", and again when the next gateway has read the session back: one order, one answer', async () => {
    const death: Death = { operation: 'completeCheckoutSession', at: 'after_merchant' };
    const call = await callFor(ground, death.operation);
    const site = await ground.site();
    await dieAt(call, site, 'after_merchant');
    await dieAt(call, site, 'after_read');
    await comeBack(ground, call, fateOf(death), replica);
  });
});
