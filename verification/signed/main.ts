/** `node verification/signed/main.ts [count]`: deliveries whose signed documents are verified. */

import { runDeliveries } from './deliveries.ts';

const DELIVERIES = 1_000;

const { verified, violations } = await runDeliveries(Number(process.argv[2] ?? DELIVERIES));
process.stdout.write(`${JSON.stringify({ verified, violations: violations.length })}\n`);
for (const violation of violations.slice(0, 20)) process.stdout.write(`${violation}\n`);
process.exitCode = violations.length === 0 ? 0 : 1;
