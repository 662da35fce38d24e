/** A purchase during which the gateway dies, and the buyer comes back. */

import assert from 'node:assert/strict';
import type { PaymentStep } from '../../../src/payments/steps.ts';
import { insist, sendUntilCut, signedCall } from './buyer.ts';
import type { Ground } from './ground.ts';
import { checkLedgers } from './ledgers.ts';
import { fateOf, type Kind, later, purchaseOf, settingsFor } from './purchases.ts';
import { openSite, type SiteParts } from './site.ts';

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
   * After another process serves: the goal applies from there, because the start of a process
   * depends on the machine.
   */
  readonly afterRestart: number;
}

/**
 * A gateway dies at the step and starts again, while the buyer retries with the same proof.
 * Afterwards the ledgers must be as without a death.
 */
export async function dieAndReturn(ground: Ground, { where, kind, step, again, key }: Death): Promise<Wait> {
  const purchase = purchaseOf(kind);
  const site = await openSite(ground, { ...where, ...settingsFor(kind) });
  const doomed = await site.start({ halt: { at: step, signal: 'SIGKILL' } });
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input, key);
  const first = sendUntilCut(call, site.baseUrl);
  assert.deepEqual(await doomed.ended, { code: null, signal: 'SIGKILL' });
  let died = performance.now();
  const answer = await first;
  // The buyer may have its answer only after the last byte was handed over.
  const answered = step === 'relayed' || step === 'delivered' ? 200 : undefined;
  assert.equal(answer?.status, answered, `the first call got ${answer?.status}; its output:\n${doomed.output()}`);

  const insisting = insist(call, site.baseUrl);
  if (again !== undefined) {
    const second = site.start({ halt: { at: again, signal: 'SIGKILL' } });
    // Its reconciler may reach the step before the process is ready.
    await second.then(
      ({ ended }) => ended,
      (thrown: Error) => assert.match(thrown.message, /ended with SIGKILL/),
    );
    died = performance.now();
  }
  const gateway = await site.start();
  try {
    const restarted = performance.now();
    const response = await insisting;
    const wait = { afterDeath: performance.now() - died, afterRestart: performance.now() - restarted };
    await checkLedgers(ground, site, { call, purchase, response, fate: fateOf(kind, later(step, again)) });
    return wait;
  } finally {
    await gateway.kill();
  }
}
