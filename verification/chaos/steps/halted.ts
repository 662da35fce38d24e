/** Launches a gateway that ends or stops at a step. */

import { join } from 'node:path';

const HALT = join(import.meta.dirname, 'halt.ts');

/** The step at which a process ends or stops, once. */
export interface Halt<Step extends string> {
  readonly at: Step;
  readonly signal: 'SIGKILL' | 'SIGSTOP';
}

/** How a gateway is launched that halts there (`halt.ts`), or nowhere. */
export function halted(halt: Halt<string> | undefined) {
  if (halt === undefined) return { env: {}, execArgv: [] };
  return { env: { HALT_AT: halt.at, HALT_SIGNAL: halt.signal }, execArgv: ['--import', HALT] };
}
