import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PaymentStep } from '../../../src/payments/steps.ts';
import { rowsOf } from '../every.ts';
import { dieAndReturn } from './deaths.ts';
import { type Ground, startGround } from './ground.ts';
import type { Kind } from './purchases.ts';

/** The goal for a buyer's wait, milliseconds after the last restart. */
const RECOVERY_MS = 10_000;
/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 120_000;

interface TwoDeaths {
  readonly kind: Kind;
  readonly step: PaymentStep;
  readonly again: PaymentStep;
  readonly rare?: true;
}

const DEATHS = rowsOf<TwoDeaths>([
  { kind: 'GET', step: 'sending', again: 'settled', rare: true },
  { kind: 'GET', step: 'signed', again: 'signed' },
  { kind: 'GET', step: 'answered', again: 'reserved' },
  { kind: 'plain POST', step: 'sending', again: 'answered' },
  { kind: 'plain POST', step: 'relaying', again: 'reserved', rare: true },
  { kind: 'GET settled after', step: 'working', again: 'settling' },
]);

describe('a gateway that dies while it recovers from a death', { concurrency: DEATHS.length }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const death of DEATHS)
    it(`at "${death.again}" after "${death.step}" of a ${death.kind}`, { timeout: TIMEOUT_MS }, async () => {
      const where = { store: 'sqlite', rail: 'local' } as const;
      const { afterRestart } = await dieAndReturn(ground, { where, ...death });
      assert.ok(afterRestart <= RECOVERY_MS, `the buyer waited ${afterRestart} ms`);
    });
});
