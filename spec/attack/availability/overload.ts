/**
 * `node spec/attack/availability/overload.ts [seconds=30]`: three times what the gateway can do, in an open loop. Capacity comes first,
 * from a closed loop of the same run; then the time of a call at 30 % of it; then the flood. Prints a table and judges the goals;
 * exit code 1 when one is missed. Gateway, merchant and load generator are processes of their own; the gateway has a core of its own
 * where there are two. PROFILE names a folder for a CPU profile of the gateway.
 */

import { INPUT, plainQuestion } from '../../bench/contestant.ts';
import { chooseCores } from '../../bench/cores.ts';
import { FREE_RESOURCE, gatewayProgram, HTTP_SHOP, invocationOf } from '../../bench/gateway.ts';
import { setStage } from '../../bench/stage.ts';
import { startFlood } from './flood.ts';
import type { LoadOrder } from './load-order.ts';
import { machineMeter } from './machine.ts';
import { judge, type Measured, type Phase, table } from './verdict.ts';
import { watch } from './watchers.ts';

const FLOOD_SECONDS = 30;
const WARM_UP_SECONDS = 4;
const MEASURE_SECONDS = 8;
/** Callers of the closed loop, and connections that the open loops share. */
const CALLERS = 32;
const CONNECTIONS = 512;
const UNLOADED_SHARE = 0.3;
const OVERLOAD = 3;

const seconds = Number(process.argv[2] ?? FLOOD_SECONDS);
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());

await using ends = new AsyncDisposableStack();
const cores = chooseCores();
const profile = process.env['PROFILE'];
const stage = await setStage(ends, { cores, signal: interrupted.signal, profile });
const { origin, program } = await stage.start({
  id: 'gateway',
  suite: 'http',
  title: 'gateway',
  question: plainQuestion(invocationOf(FREE_RESOURCE), 200, ''),
  readyPath: '/ready',
  program: gatewayProgram('gateway', HTTP_SHOP),
});
const flood = startFlood(cores.others);
ends.defer(() => flood.stop());

const calls = { origin, path: invocationOf(FREE_RESOURCE), body: JSON.stringify(INPUT) };

/** Runs an order and adds what the machine did meanwhile. */
async function measure(order: Omit<LoadOrder, keyof typeof calls>): Promise<Phase> {
  const used = machineMeter(program.pid);
  const report = await flood.run({ ...calls, ...order });
  return { ...report, ...used() };
}

await measure({ connections: CALLERS, seconds: WARM_UP_SECONDS, shape: { kind: 'closed' } });
const capacity = await measure({ connections: CALLERS, seconds: MEASURE_SECONDS, shape: { kind: 'closed' } });
const perSecond = capacity.good / capacity.seconds;
const calm = await measure({
  connections: CONNECTIONS,
  seconds: MEASURE_SECONDS,
  shape: { kind: 'open', perSecond: perSecond * UNLOADED_SHARE },
});
const watched = watch({
  '/health': `${origin}/health`,
  '/ready': `${origin}/ready`,
  discovery: `${origin}/api/resources`,
});
const flooded = await measure({
  connections: CONNECTIONS,
  seconds,
  shape: { kind: 'open', perSecond: perSecond * OVERLOAD },
});
const measured: Measured = { capacity, calm, flooded, overload: OVERLOAD, watched: await watched() };
const verdict = judge(measured);
process.stdout.write(`${table(measured)}\n${verdict.map(({ said }) => said).join('\n')}\n`);
process.exitCode = verdict.every(({ met }) => met) ? 0 : 1;
