import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runRefunds } from './run.ts';

/** `node verification/refunds/main.ts` sends 500. */
const REFUNDS = 40;

it('refunds under kills, two operators at once, lost requests and a lost store are sent once', async (t) => {
  const { violations, ...run } = await runRefunds(REFUNDS);
  t.diagnostic(JSON.stringify(run));
  assert.deepEqual(violations, []);
  assert.ok(run.kills > 0 && run.forgotten > 0, JSON.stringify(run));
});
