import { once } from 'node:events';
import { join } from 'node:path';
import { startProgram } from '../../bench/program.ts';
import type { LoadOrder, LoadReport } from './load-order.ts';

/** How long after its time an order may still take, milliseconds. */
const LATE_MS = 30_000;

/** The load generator, in a process of its own so that nothing else delays its clock. */
export interface Flood {
  /** @throws Error when no report came in time */
  run(order: LoadOrder): Promise<LoadReport>;
  stop(): Promise<void>;
}

/** Starts the generator, on a core when one is named. */
export function startFlood(core: number | undefined): Flood {
  const program = startProgram(core, [join(import.meta.dirname, 'load-main.ts')], {});
  return {
    async run(order) {
      const answer = once(program.child, 'message', { signal: AbortSignal.timeout(order.seconds * 1_000 + LATE_MS) });
      program.child.send(order);
      const [report] = (await answer) as [LoadReport];
      return report;
    },
    stop: () => program.stop(),
  };
}
