/**
 * Leaves out one check at a time of what verifies the log of receipts, and runs its specs over
 * SQLite: `node verification/receipts/mutants.ts`. Mutants that no test notices are printed; exit
 * code 1 then.
 */

import { readFileSync } from 'node:fs';
import type { Mutant } from '../mandates/mutants/mutant.ts';
import { mutantsOf } from '../mandates/mutants/sites.ts';
import { tried } from '../mandates/mutants/trial.ts';

const FILES = ['verify.ts', 'checkpoint.ts', 'series.ts'].map((name) => `src/receipts/log/${name}`);
const SPECS = ['verify', 'sqlite-log'].map((name) => `spec/receipts/log/${name}.spec.ts`);
const TRIALS_AT_ONCE = 2;
const TIMEOUT_MS = 180_000;

const mutants = FILES.flatMap((file) => mutantsOf(file, readFileSync(file, 'utf8'))).filter(({ whole }) => whole);
if ((await tried(undefined, SPECS, TIMEOUT_MS)) !== 'survived') throw new Error('the specs fail on the code as it is');
const queue: Mutant[] = [...mutants];
const survivors: Mutant[] = [];
await Promise.all(
  Array.from({ length: TRIALS_AT_ONCE }, async () => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift())
      if ((await tried(mutant, SPECS, TIMEOUT_MS)) === 'survived') survivors.push(mutant);
  }),
);
for (const { name, line } of survivors) console.log(`SURVIVED line ${line}: ${name}`);
console.log(`${mutants.length} mutants, ${mutants.length - survivors.length} noticed, ${survivors.length} not`);
process.exitCode = survivors.length === 0 ? 0 : 1;
