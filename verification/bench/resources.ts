/** The suite of catalogues: what a start with 10,000 resources costs. */

import { groundFor, type Measured, type MeasuringParts } from './ground.ts';
import { treeResidentBytes } from './meter.ts';
import { gatewayWithResources } from './peers/gateway.ts';

const COUNT = 10_000;
const ROUNDS = 4;

/** Rows `resources-start-10000` (s) and `resources-rss-10000` (MB). */
export async function measureResources(parts: MeasuringParts): Promise<Measured> {
  // Built before the first start.
  await parts.entries.gateway();
  const [seconds, mb]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = await startOf(parts);
    seconds.push(start.seconds);
    mb.push(start.mb);
    parts.tell(`${COUNT} resources: ${start.seconds.toFixed(2)} s, ${start.mb.toFixed(0)} MB`);
  }
  return new Map([
    [`resources-start-${COUNT}`, { values: seconds }],
    [`resources-rss-${COUNT}`, { values: mb }],
  ]);
}

/** From the start of the process until it is ready, and its memory then. */
async function startOf(parts: MeasuringParts) {
  await using ends = new AsyncDisposableStack();
  const { stage } = await groundFor(ends, parts);
  const began = performance.now();
  const { program } = await stage.start(gatewayWithResources(COUNT));
  return { seconds: (performance.now() - began) / 1_000, mb: treeResidentBytes(program.pid) / 1_048_576 };
}
