/** The suite of catalogues: what a start and a free call cost with two to 10,000 resources. */

import { type Ground, groundFor, type Measured, type MeasuringParts } from './ground.ts';
import { treeCpuNs, treeResidentBytes } from './meter.ts';
import { median } from './numbers.ts';
import { gatewayWithResources } from './peers/gateway.ts';
import type { Started } from './stage.ts';
import type { Measurement } from './verdict.ts';

const COUNTS = [2, 200, 1_000, 10_000] as const;
const START_ROUNDS = 4;
const CALL_ROUNDS = 6;
const WARM_UP_SECONDS = 6;
const TURN_SECONDS = 1;

/** Rows `resources-start-N` (s), `resources-rss-N` (MB) and `resources-call` (ratio). */
export async function measureResources(parts: MeasuringParts): Promise<Measured> {
  const values = new Map<string, Measurement>();
  // Built before the first start.
  await parts.entries.gateway();
  for (const count of COUNTS) {
    const starts: { readonly seconds: number; readonly mb: number }[] = [];
    try {
      for (let round = 0; round < START_ROUNDS; round += 1) starts.push(await startOf(count, parts));
    } catch (error) {
      parts.signal.throwIfAborted();
      const missing = `no start with ${count}: ${lineOf(error)}`;
      for (const row of ['start', 'rss']) values.set(`resources-${row}-${count}`, { missing });
      parts.tell(missing);
      continue;
    }
    values.set(`resources-start-${count}`, { values: starts.map(({ seconds }) => seconds) });
    values.set(`resources-rss-${count}`, { values: starts.map(({ mb }) => mb) });
    const [seconds, mb] = [median(starts.map((one) => one.seconds)), median(starts.map((one) => one.mb))];
    parts.tell(`${count} resources: ${seconds.toFixed(2)} s, ${mb.toFixed(0)} MB`);
  }
  const last = COUNTS.findLast((count) => 'values' in (values.get(`resources-rss-${count}`) ?? {})) ?? COUNTS[0];
  values.set('resources-call', { values: await callRatios(last, parts) });
  return values;
}

/** From the start of the process until it is ready, and its memory then. */
async function startOf(count: number, parts: MeasuringParts) {
  await using ends = new AsyncDisposableStack();
  const { stage } = await groundFor(ends, parts);
  const began = performance.now();
  const { program } = await stage.start(gatewayWithResources(count));
  return { seconds: (performance.now() - began) / 1_000, mb: treeResidentBytes(program.pid) / 1_048_576 };
}

/** CPU of a free call with `count` resources through that with two, round by round. */
async function callRatios(count: number, parts: MeasuringParts): Promise<readonly number[]> {
  await using ends = new AsyncDisposableStack();
  const ground = await groundFor(ends, parts);
  const [few, many] = [
    await ground.stage.start(gatewayWithResources(2)),
    await ground.stage.start(gatewayWithResources(count)),
  ];
  for (const side of [few, many]) await cpuOf(side, WARM_UP_SECONDS, ground, parts.signal);
  const ratios: number[] = [];
  for (let round = 0; round < CALL_ROUNDS; round += 1) {
    const cpu = new Map<Started, number>();
    for (const side of round % 2 === 0 ? [few, many] : [many, few])
      cpu.set(side, await cpuOf(side, TURN_SECONDS, ground, parts.signal));
    ratios.push((cpu.get(many) ?? Number.NaN) / (cpu.get(few) ?? Number.NaN));
  }
  parts.tell(`a free call with ${count} resources costs ${median(ratios).toFixed(2)} of one with 2`);
  return ratios;
}

async function cpuOf(
  { origin, contestant, program }: Started,
  seconds: number,
  { load }: Ground,
  signal: AbortSignal,
): Promise<number> {
  const before = treeCpuNs(program.pid);
  const { requests } = await load.fire({ origin, question: contestant.question, seconds }, signal);
  return (treeCpuNs(program.pid) - before) / requests;
}

function lineOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n').find((line) => line.includes('resources')) ?? message.split('\n')[0] ?? message;
}
