/** A purchase during which the gateway dies, and the buyer comes back. */

import assert from 'node:assert/strict';
import type { PaymentStep } from '../../../src/payments/steps.ts';
import { checkBooks } from './books.ts';
import { insist, sendUntilCut, signedCall } from './buyer.ts';
import type { Ground } from './ground.ts';
import { fateOf, type Kind, later, purchaseOf } from './purchases.ts';
import { type Launch, openSite, type SiteParts } from './site.ts';

/** A purchase during which the gateway dies. */
export interface Death {
  readonly where: Pick<SiteParts, 'store' | 'rail'>;
  readonly kind: Kind;
  readonly step: PaymentStep;
  /** Where the process that takes over dies too. */
  readonly again?: PaymentStep;
  /** The buyer's Idempotency-Key. */
  readonly key?: string;
}

/** How long a buyer waits, milliseconds. */
export interface Wait {
  /** After the death. */
  readonly afterDeath: number;
  /**
   * After another process serves: what a goal can be set for, because starting one takes as long as
   * the machine is slow.
   */
  readonly afterRestart: number;
}

/**
 * A gateway dies at the step, starts again, and the buyer insists with the same proof meanwhile.
 * Afterwards the books must be as if nothing had happened. `launch`: how both processes are run.
 */
export async function dieAndReturn(
  ground: Ground,
  { where, kind, step, again, key }: Death,
  launch: Launch = {},
): Promise<Wait> {
  const purchase = purchaseOf(kind);
  const site = await openSite(ground, where);
  const doomed = await site.start({ ...launch, halt: { at: step, signal: 'SIGKILL' } });
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input, key);
  const first = sendUntilCut(call, site.baseUrl);
  assert.deepEqual(await doomed.ended, { code: null, signal: 'SIGKILL' });
  let died = performance.now();
  const answer = await first;
  // Only after the last byte was handed over may he have his answer.
  const answered = step === 'relayed' || step === 'delivered' ? 200 : undefined;
  assert.equal(answer?.status, answered, `the first call got ${answer?.status}; the gateway said:\n${doomed.output()}`);

  const insisting = insist(call, site.baseUrl);
  if (again !== undefined) {
    const second = site.start({ ...launch, halt: { at: again, signal: 'SIGKILL' } });
    // Its reconciler may get there before it is ready.
    await second.then(
      ({ ended }) => ended,
      (thrown: Error) => assert.match(thrown.message, /ended with SIGKILL/),
    );
    died = performance.now();
  }
  const gateway = await site.start(launch);
  try {
    const restarted = performance.now();
    const told = await insisting;
    const wait = { afterDeath: performance.now() - died, afterRestart: performance.now() - restarted };
    await checkBooks(ground, site, { call, purchase, told, fate: fateOf(kind, later(step, again)) });
    return wait;
  } finally {
    await gateway.kill();
  }
}
