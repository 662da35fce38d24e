/**
 * `node verification/attack/availability/slow-clients.ts [seconds=5] [connections=400]`: the effect
 * of slow clients on the calls of others. An open loop asks at a fixed rate, in turns alone and
 * beside slow clients of one of the three kinds; those of slowhttptest too, when that is on the
 * PATH. Prints a table; exit code 1 when a p99 is more than twice the one without them, or a call
 * was not answered.
 */

import { startWorld } from '../../../spec/support/world.ts';
import { median } from '../../bench/numbers.ts';
import { startFlood } from './flood.ts';
import type { LoadReport } from './load-task.ts';
import { SLOW_KINDS, type SlowKind, startSlow } from './slow.ts';
import { hasSlowhttptest, startSlowhttptest } from './slowhttptest.ts';

const MAX_P99_RATIO = 2;
const CALLS_PER_SECOND = 200;
const CALLERS = 32;
/** How often each kind takes turns with no slow client; the medians count. */
const ROUNDS = 3;
/** Measurements that do not count after the slow ones have come. */
const SETTLING = 2;
/** The share that may be refused with 503: the event loop may be late for a moment. */
const MAX_REFUSED = 0.01;

const seconds = Number(process.argv[2] ?? 5);
const connections = Number(process.argv[3] ?? 400);

await using ends = new AsyncDisposableStack();
const world = await startWorld();
ends.defer(() => world.stop());
const { baseUrl } = world.gateway;
const flood = startFlood(undefined);
ends.defer(() => flood.stop());
const ask = (): Promise<LoadReport> =>
  flood.run({
    ...{ origin: baseUrl, path: '/api/resources/cities/invoke', body: '{}' },
    ...{ connections: CALLERS, seconds, shape: { kind: 'open', perSecond: CALLS_PER_SECOND } },
  });

/** The measurements, and the state of the slow clients. */
interface Beside {
  readonly report: LoadReport;
  readonly rest: string;
}

async function besideOurs(kind: SlowKind): Promise<Beside> {
  const slow = await startSlow(kind, connections, baseUrl);
  // Until the buffers up to the backend are full, slow readers read at full speed, gigabytes in
  // all.
  for (let settling = 0; settling < SETTLING; settling += 1) await ask();
  const report = await ask();
  const rest = `${slow.connected()} of ${slow.count} connections left`;
  slow.close();
  return { report, rest };
}

async function besideSlowhttptest(kind: SlowKind): Promise<Beside> {
  const attack = startSlowhttptest(kind, connections, seconds, baseUrl);
  return { report: await ask(), rest: await attack };
}

await ask();
for (const kind of SLOW_KINDS) await judge(`slow ${kind}`, () => besideOurs(kind));
if (hasSlowhttptest())
  for (const kind of SLOW_KINDS) await judge(`slowhttptest ${kind}`, () => besideSlowhttptest(kind));
else process.stdout.write('slowhttptest is not on the PATH\n');

async function judge(title: string, beside: () => Promise<Beside>): Promise<void> {
  const alone: LoadReport[] = [];
  const disturbed: Beside[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(await ask());
    disturbed.push(await beside());
  }
  const reports = disturbed.map(({ report }) => report);
  const unanswered = reports.reduce((sum, { wrong, unsent }) => sum + wrong + unsent, 0);
  const refused = reports.reduce((sum, { busy }) => sum + busy, 0) / (ROUNDS * seconds * CALLS_PER_SECOND);
  const [calm, slowed] = [alone, reports].map((all) =>
    median(all.map(({ p99Ms }) => p99Ms ?? Number.POSITIVE_INFINITY)),
  );
  const ratio = (slowed ?? Number.NaN) / (calm ?? Number.NaN);
  const met = ratio <= MAX_P99_RATIO && unanswered === 0 && refused <= MAX_REFUSED;
  if (!met) process.exitCode = 1;
  const figures = `p99 ${calm?.toFixed(1)} ms alone, ${slowed?.toFixed(1)} ms beside, ${ratio.toFixed(1)} x; ${unanswered} not answered, ${(100 * refused).toFixed(1)} % refused`;
  process.stdout.write(`${met ? 'met   ' : 'MISSED'} ${title}: ${figures}; ${disturbed.at(-1)?.rest}\n`);
}
