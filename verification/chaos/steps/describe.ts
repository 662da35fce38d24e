/** The specs of deaths for one store and rail, run side by side. */

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PaymentStep } from '../../../src/payments/steps.ts';
import { EVERY } from '../every.ts';
import { dieAndReturn } from './deaths.ts';
import { type Ground, startGround } from './ground.ts';
import { type Kind, STEPS, STEPS_AFTER } from './purchases.ts';
import type { SiteParts } from './site.ts';

/**
 * Deaths at the same time: most of the time is waiting for a lease to end, the rest is starting
 * processes.
 */
const AT_ONCE = 6;
/**
 * The longest a buyer may wait, milliseconds after another process serves: the goal of 10 s for the
 * record, which `absent-buyer.spec.ts` checks, and the waits that the gateway asks of the buyer (3
 * s of joining, 1 s before the next attempt).
 */
const RECOVERY_MS = 14_000;
/** A key that only this buyer knows. */
const KEY = 'key-of-the-buyer';

/** Up to the write of `settled` nothing depends on the backend, so the other kinds begin there. */
const STEPS_OF: Readonly<Record<Kind, readonly PaymentStep[]>> = {
  GET: STEPS,
  'idempotent POST': ['settled', 'forwarding', 'relaying', 'relayed', 'delivered'],
  'plain POST': ['sending', 'answered', 'settled', 'forwarding', 'relaying', 'relayed', 'delivered'],
  'GET settled after': STEPS_AFTER,
  'POST settled after': STEPS_AFTER,
};

interface Where extends Pick<SiteParts, 'store'> {
  readonly rail: 'local' | 'official';
}

/** The deaths of a test run. */
type Short = readonly [Kind, readonly PaymentStep[]];

/**
 * What a death leaves behind depends on the step; store, rail and kind of call depend little on one
 * another. So a test run has every step for the gateway without a facilitator, and elsewhere the
 * steps at which other writes or calls happen.
 */
const SHORT: Readonly<Record<`${Where['store']} ${Where['rail']}`, Short>> = {
  'sqlite local': ['GET', STEPS],
  'redis official': ['GET', ['verified', 'settling', 'sending', 'answered', 'settled', 'relayed']],
  'sqlite official': ['idempotent POST', ['settled', 'relaying', 'delivered']],
  'redis local': ['plain POST', ['sending', 'settled', 'forwarding', 'relayed']],
};

/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 90_000;

/** Every death of a gateway with this store and this rail; in a test run those of `short`. */
export function describeDeaths(where: Where, short: Short = SHORT[`${where.store} ${where.rail}`]): void {
  const deaths = EVERY ? (Object.entries(STEPS_OF) as [Kind, readonly PaymentStep[]][]) : [short];
  describe(`a gateway on ${where.store} with the ${where.rail} rail that dies`, { concurrency: AT_ONCE }, () => {
    let ground: Ground;
    const waits: number[] = [];
    before(async () => {
      ground = await startGround();
    });
    after(async () => {
      await ground.stop();
      const [longest, middle] = [Math.max(...waits), waits.toSorted((a, b) => a - b)[waits.length >> 1] ?? 0];
      console.log(
        `${waits.length} deaths on ${where.store}, ${where.rail}: the buyer waited ${seconds(middle)} in the middle, ${seconds(longest)} at most`,
      );
    });

    for (const [kind, steps] of deaths)
      for (const step of steps) {
        if (step === 'signed' && where.rail !== 'local') continue;
        const key = kind === 'idempotent POST' ? { key: KEY } : {};
        it(`at "${step}" of a ${kind} loses and doubles nothing`, { timeout: TIMEOUT_MS }, async () => {
          const { afterDeath, afterRestart } = await dieAndReturn(ground, { where, kind, step, ...key });
          waits.push(afterDeath);
          assert.ok(afterRestart <= RECOVERY_MS, `the buyer waited ${seconds(afterRestart)} after the restart`);
        });
      }
  });
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
