import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runRefunds } from './run.ts';

/** `node verification/refunds/main.ts` sends 500. */
const REFUNDS = 16;

it('refunds under kills, two operators at once, restarts of the node and a lost store are sent once', async (t) => {
  const { violations, ...run } = await runRefunds(REFUNDS);
  t.diagnostic(JSON.stringify(run));
  assert.deepEqual(violations, []);
  for (const fault of ['kills', 'restarts', 'forgottenTransactions', 'forgotten'] as const)
    assert.ok(run[fault] > 0, JSON.stringify(run));
});
