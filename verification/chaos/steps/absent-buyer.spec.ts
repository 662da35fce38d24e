import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { rowsOf } from '../every.ts';
import { dieAndReturnLate } from './absences.ts';
import type { Death } from './deaths.ts';
import { type Ground, startGround } from './ground.ts';

/** Deaths at the same time: most of the time is waiting for a lease to end. */
const AT_ONCE = 6;
/** The goal for the reconciler, milliseconds after the restart. */
const RECOVERY_MS = 10_000;

const EMBEDDED = { store: 'sqlite', rail: 'local' } as const;
const SHARED = { store: 'redis', rail: 'official' } as const;
const KEY = 'key-of-the-buyer';
/** The steps at which the reconciler has other work than at the step before. */
const DEATHS = rowsOf<Death & { readonly rare?: true }>([
  { where: EMBEDDED, kind: 'GET settled after', step: 'reserved' },
  { where: EMBEDDED, kind: 'GET', step: 'settling', rare: true },
  { where: EMBEDDED, kind: 'GET', step: 'signed' },
  { where: EMBEDDED, kind: 'GET', step: 'settled' },
  { where: EMBEDDED, kind: 'GET', step: 'relayed', rare: true },
  { where: SHARED, kind: 'plain POST', step: 'sending' },
  { where: SHARED, kind: 'plain POST', step: 'answered', rare: true },
  { where: SHARED, kind: 'plain POST', step: 'forwarding', rare: true },
  { where: SHARED, kind: 'plain POST', step: 'relaying' },
  { where: SHARED, kind: 'idempotent POST', step: 'forwarding', key: KEY },
  { where: SHARED, kind: 'idempotent POST', step: 'relayed', key: KEY, rare: true },
  { where: EMBEDDED, kind: 'GET settled after', step: 'working', rare: true },
  { where: EMBEDDED, kind: 'GET settled after', step: 'settling' },
  { where: EMBEDDED, kind: 'GET settled after', step: 'signed', rare: true },
  { where: SHARED, kind: 'POST settled after', step: 'settling', rare: true },
  { where: SHARED, kind: 'POST settled after', step: 'sending' },
  { where: SHARED, kind: 'POST settled after', step: 'settled' },
]);

describe('a payment of a dead gateway that no buyer asks for', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  let longest = 0;
  before(async () => {
    ground = await startGround();
  });
  after(async () => {
    await ground.stop();
    console.log(`${DEATHS.length} deaths: nothing was open after ${(longest / 1_000).toFixed(1)} s at most`);
  });

  for (const death of DEATHS) {
    const { kind, step, where } = death;
    it(`is finished by the reconciler: "${step}" of a ${kind} on ${where.store}`, async () => {
      const took = await dieAndReturnLate(ground, death);
      longest = Math.max(longest, took);
      assert.ok(took <= RECOVERY_MS, `it took ${took} ms`);
    });
  }
});
