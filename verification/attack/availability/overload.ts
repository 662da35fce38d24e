/**
 * `node verification/attack/availability/overload.ts [seconds=30] [--call
 * free|challenge|paid|mix|all]`: three times the capacity of the gateway, in an open loop. Capacity
 * comes first, from a closed loop of the same run; then the time of a call at 30 % of it; then the
 * flood. Prints a table for each kind of call, with a gateway of its own, and judges the goals;
 * exit code 1 when one is missed. Gateway, backend, facilitator and load generator are processes of
 * their own; the gateway has a core of its own where there are two. PROFILE names a folder for CPU
 * profiles of the gateway.
 */

import { parseArgs } from 'node:util';
import { BLENDS, type BlendName, blendsOf } from './blend.ts';
import { measureOverload } from './measure.ts';
import { judge, table } from './verdict.ts';

const FLOOD_SECONDS = '30';

const { values, positionals } = parseArgs({ options: { call: { type: 'string' } }, allowPositionals: true });
const seconds = Number(positionals[0] ?? FLOOD_SECONDS);
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());

let met = true;
for (const name of blendsOf(values.call ?? 'all')) met = (await meetsGoals(name)) && met;
process.exitCode = met ? 0 : 1;

/** Whether all goals were met. */
async function meetsGoals(name: BlendName): Promise<boolean> {
  const measured = await measureOverload(BLENDS[name], seconds, interrupted.signal);
  const verdict = judge(measured);
  process.stdout.write(`${name}\n${table(measured)}\n${verdict.map(({ text }) => text).join('\n')}\n\n`);
  return verdict.every((goal) => goal.met);
}
