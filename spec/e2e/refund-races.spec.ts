import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { raceRefunds } from './refund-races.ts';

/** `RACE_ROUNDS=500 make test SPEC=spec/e2e/refund-races.spec.ts` for the long run. */
const ROUNDS = Number(process.env['RACE_ROUNDS'] ?? 20);

describe('a payment that is sent back now while its buyer collects', () => {
  for (const store of ['sqlite', 'redis'] as const)
    it(`is paid back or delivered, never both (${store})`, async (t) => {
      const { violations, ...run } = await raceRefunds(ROUNDS, store);
      t.diagnostic(JSON.stringify(run));
      assert.deepEqual(violations, []);
      assert.ok(run.delivered > 0 && run.refunded > 0, JSON.stringify(run));
    });
});
