/**
 * `node verification/mandates/flips.ts [count] [seed]`: accepted headers with one small fault each;
 * none may pass as a new mandate.
 */
import { createMint } from '../../spec/support/ap2/mint.ts';
import { verifierFor } from '../../spec/support/ap2/verifier.ts';
import { headersOf, hunted } from './flips/hunt.ts';

const [count = '10000', seed = String(Date.now() % 1_000_000)] = process.argv.slice(2);
const mint = createMint();
const findings = await hunted(verifierFor(mint), headersOf(mint), { seed: Number(seed), count: Number(count) });
for (const [reason, times] of [...findings.refused].sort(([, a], [, b]) => b - a))
  console.log(`${String(times).padStart(7)}  ${reason}`);
console.log(`${String(findings.replayed).padStart(7)}  accepted as the mandate that was used: replayed`);
for (const one of findings.found) console.log(`ACCEPTED AS NEW  ${one}`);
console.log(`${findings.tried} faults (seed ${seed}), ${findings.found.length} accepted as new`);
process.exitCode = findings.found.length === 0 && findings.tried === Number(count) ? 0 : 1;
