import { join } from 'node:path';

const HALT = join(import.meta.dirname, 'halt.ts');

/** Where a process ends or stands still, once. */
export interface Halt<Step extends string> {
  readonly at: Step;
  readonly signal: 'SIGKILL' | 'SIGSTOP';
}

/**
 * How a gateway is launched that halts there, or nowhere (`halt.ts`). It does not wait for traffic
 * to end.
 */
export function halted(halt: Halt<string> | undefined) {
  const env = { GATEWAY_DRAIN_SECONDS: '0' };
  if (halt === undefined) return { env, execArgv: [] };
  return { env: { ...env, HALT_AT: halt.at, HALT_SIGNAL: halt.signal }, execArgv: ['--import', HALT] };
}
