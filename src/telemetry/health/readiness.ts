/** How looks at a component become its readiness: pure transitions, and the wire form. */

/** A component's check as `/ready` shows it (specification 2). */
export interface ReadinessCheck {
  readonly name: string;
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail?: ReadinessDetail;
}

/** The closed vocabulary of contract 2; causes go to the log. */
type ReadinessDetail =
  | `${'store' | 'adapter' | 'payment-provider' | 'authorization-provider'}-${'degraded' | 'unreachable'}`
  | 'backend-exposed'
  | 'backend-unreachable'
  | 'store-unwritable'
  | 'draining'
  | 'starting';

/** The result of one look at a component. */
export type Observation = 'ok' | 'degraded' | 'unreachable' | 'unwritable';

/** The state between looks. Times in milliseconds of a monotonic clock. */
export interface CheckState {
  readonly status: ReadinessCheck['status'];
  readonly last: Observation;
  readonly failures: number;
  readonly lastGoodAt: number;
}

/** Failed looks in a row that turn `warn` into `fail`. */
const FAILURES_TO_FAIL = 3;
/** Time since the last good look that does the same, milliseconds. */
const STALE_AFTER_MS = 10_000;

/** Before the first look: a component fails until a look has found it working. */
export const UNSEEN: CheckState = { status: 'fail', last: 'unreachable', failures: 0, lastGoodAt: -STALE_AFTER_MS };

/**
 * The transitions of contract 2: the first failure warns, the third in a row (or 10 s without a
 * good look) fails, one good look passes. A store that cannot write fails at once; a degraded
 * component warns and serves.
 */
export function observe(state: CheckState, found: Observation, now: number): CheckState {
  if (found === 'ok') return { status: 'pass', last: found, failures: 0, lastGoodAt: now };
  if (found === 'degraded') return { status: 'warn', last: found, failures: 0, lastGoodAt: now };
  const failures = state.failures + 1;
  const failing = found === 'unwritable' || failures >= FAILURES_TO_FAIL || now - state.lastGoodAt >= STALE_AFTER_MS;
  return { status: failing ? 'fail' : 'warn', last: found, failures, lastGoodAt: state.lastGoodAt };
}

/** Renders a check; `pass` carries no detail. */
export function renderCheck(
  name: string,
  kind: 'store' | 'adapter' | 'payment-provider' | 'authorization-provider',
  state: CheckState,
): ReadinessCheck {
  if (state.status === 'pass') return { name, status: 'pass' };
  if (state.last === 'unwritable') return { name, status: state.status, detail: 'store-unwritable' };
  return { name, status: state.status, detail: `${kind}-${state.last === 'degraded' ? 'degraded' : 'unreachable'}` };
}
