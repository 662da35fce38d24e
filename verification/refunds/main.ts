/** `node verification/refunds/main.ts 500`: the run of `run.ts` with that many refunds. */

import { runRefunds } from './run.ts';

const run = await runRefunds(Number(process.argv[2] ?? 500));
process.stdout.write(`${JSON.stringify(run, null, 2)}\n`);
process.exitCode = run.violations.length === 0 ? 0 : 1;
