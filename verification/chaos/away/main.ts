/**
 * The runs with a backend that is away: `node verification/chaos/away/main.ts [--calls 1000]
 * [--only hangs]`. One JSON line a scenario.
 */
import { parseArgs } from 'node:util';
import { faults, SCENARIOS } from './scenarios.ts';

const { values } = parseArgs({ options: { calls: { type: 'string' }, only: { type: 'string' } } });
const calls = Number(values.calls ?? 1_000);
let failed = false;
for (const { name, run } of SCENARIOS) {
  if (values.only !== undefined && name !== values.only) continue;
  const shown = await run(calls);
  const wrong = faults(shown);
  failed ||= wrong.length > 0;
  process.stdout.write(`${JSON.stringify({ ...shown, ...(wrong.length > 0 ? { faults: wrong } : {}) })}\n`);
}
process.exit(failed ? 1 : 0);
