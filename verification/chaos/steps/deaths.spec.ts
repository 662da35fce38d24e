import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PaymentStep } from '../../../src/payments/settlement/attempt.ts';
import { EVERY, rowsOf } from '../plan.ts';
import { type Death, dieAndReturn, dieAndReturnLate } from './deaths.ts';
import { type Kind, STEPS, STEPS_AFTER } from './purchases.ts';
import { type Ground, type SiteParts, startGround } from './site.ts';

/**
 * Deaths at the same time: most of the time is waiting for a lease to end, the rest is starting
 * processes.
 */
const AT_ONCE = 6;
/**
 * The longest a buyer may wait, milliseconds after another process serves: the goal of 10 s for the
 * record, which the absent buyers below check, and the waits that the gateway asks of the buyer (3
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

type Where = Pick<SiteParts, 'store'> & { readonly rail: 'local' | 'official' };

const SQLITE_LOCAL: Where = { store: 'sqlite', rail: 'local' };
const REDIS_OFFICIAL: Where = { store: 'redis', rail: 'official' };
const SQLITE_OFFICIAL: Where = { store: 'sqlite', rail: 'official' };
const REDIS_LOCAL: Where = { store: 'redis', rail: 'local' };

/**
 * What a death leaves behind depends on the step; store, rail and kind of call depend little on one
 * another. So a test run has every step for the gateway without a facilitator, and elsewhere the
 * steps at which other writes or calls happen.
 */
const SHORT: readonly (readonly [Where, Kind, readonly PaymentStep[]])[] = [
  [SQLITE_LOCAL, 'GET', STEPS],
  [SQLITE_LOCAL, 'GET settled after', STEPS_AFTER],
  [REDIS_OFFICIAL, 'GET', ['verified', 'settling', 'sending', 'answered', 'settled', 'relayed']],
  [REDIS_OFFICIAL, 'POST settled after', STEPS_AFTER],
  [SQLITE_OFFICIAL, 'idempotent POST', ['settled', 'relaying', 'delivered']],
  [REDIS_LOCAL, 'plain POST', ['sending', 'settled', 'forwarding', 'relayed']],
];
const DEATHS = EVERY
  ? [SQLITE_LOCAL, REDIS_OFFICIAL, SQLITE_OFFICIAL, REDIS_LOCAL].flatMap((where) =>
      (Object.entries(STEPS_OF) as [Kind, readonly PaymentStep[]][]).map(
        ([kind, steps]) => [where, kind, steps] as const,
      ),
    )
  : SHORT;

/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 120_000;

describe('a gateway that dies during a paid call', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const [where, kind, steps] of DEATHS)
    for (const step of steps) {
      if (step === 'signed' && where.rail !== 'local') continue;
      const key = kind === 'idempotent POST' ? { key: KEY } : {};
      const title = `at "${step}" of a ${kind} on ${where.store} with the ${where.rail} rail loses and doubles nothing`;
      it(title, { timeout: TIMEOUT_MS }, async () => {
        const { afterRestart } = await dieAndReturn(ground, { where, kind, step, ...key });
        assert.ok(afterRestart <= RECOVERY_MS, `the buyer waited ${afterRestart} ms after the restart`);
      });
    }
});

/** The goal for the reconciler, milliseconds after the restart. */
const RECONCILED_MS = 10_000;

/** The steps at which the reconciler has other work than at the step before. */
const ABSENCES = rowsOf<Death & { readonly rare?: true }>([
  { where: SQLITE_LOCAL, kind: 'GET settled after', step: 'reserved' },
  { where: SQLITE_LOCAL, kind: 'GET', step: 'settling', rare: true },
  { where: SQLITE_LOCAL, kind: 'GET', step: 'signed' },
  { where: SQLITE_LOCAL, kind: 'GET', step: 'settled' },
  { where: SQLITE_LOCAL, kind: 'GET', step: 'relayed', rare: true },
  { where: REDIS_OFFICIAL, kind: 'plain POST', step: 'sending' },
  { where: REDIS_OFFICIAL, kind: 'plain POST', step: 'answered', rare: true },
  { where: REDIS_OFFICIAL, kind: 'plain POST', step: 'forwarding', rare: true },
  { where: REDIS_OFFICIAL, kind: 'plain POST', step: 'relaying' },
  { where: REDIS_OFFICIAL, kind: 'idempotent POST', step: 'forwarding', key: KEY },
  { where: REDIS_OFFICIAL, kind: 'idempotent POST', step: 'relayed', key: KEY, rare: true },
  { where: SQLITE_LOCAL, kind: 'GET settled after', step: 'working', rare: true },
  { where: SQLITE_LOCAL, kind: 'GET settled after', step: 'settling' },
  { where: SQLITE_LOCAL, kind: 'GET settled after', step: 'signed', rare: true },
  { where: REDIS_OFFICIAL, kind: 'POST settled after', step: 'settling', rare: true },
  { where: REDIS_OFFICIAL, kind: 'POST settled after', step: 'sending' },
  { where: REDIS_OFFICIAL, kind: 'POST settled after', step: 'settled' },
]);

describe('a payment of a dead gateway that no buyer asks for', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const death of ABSENCES) {
    const { kind, step, where } = death;
    it(`is finished by the reconciler: "${step}" of a ${kind} on ${where.store}`, async () => {
      const took = await dieAndReturnLate(ground, death);
      assert.ok(took <= RECONCILED_MS, `it took ${took} ms`);
    });
  }
});

interface TwoDeaths {
  readonly kind: Kind;
  readonly step: PaymentStep;
  readonly again: PaymentStep;
  readonly rare?: true;
}

const TWICE = rowsOf<TwoDeaths>([
  { kind: 'GET', step: 'sending', again: 'settled', rare: true },
  { kind: 'GET', step: 'signed', again: 'signed' },
  { kind: 'GET', step: 'answered', again: 'reserved' },
  { kind: 'plain POST', step: 'sending', again: 'answered' },
  { kind: 'plain POST', step: 'relaying', again: 'reserved', rare: true },
  { kind: 'GET settled after', step: 'working', again: 'settling' },
]);

describe('a gateway that dies while it recovers from a death', { concurrency: TWICE.length }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const death of TWICE)
    it(`at "${death.again}" after "${death.step}" of a ${death.kind}`, { timeout: TIMEOUT_MS }, async () => {
      const { afterRestart } = await dieAndReturn(ground, { where: SQLITE_LOCAL, ...death });
      assert.ok(afterRestart <= RECONCILED_MS, `the buyer waited ${afterRestart} ms`);
    });
});
