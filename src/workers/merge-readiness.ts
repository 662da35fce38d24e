/**
 * Makes one readiness of those of all workers: what fails in one of them fails, and everything does
 * in one that does not answer. Connections go to the workers in turn, so a part of all calls would
 * wait for that one: they belong to another pod, as those of a single process that hangs do.
 */

import type { Readiness } from '../telemetry/health/monitor.ts';
import type { ReadinessCheck } from '../telemetry/health/readiness.ts';

const SEVERITY: Readonly<Record<ReadinessCheck['status'], number>> = { pass: 0, warn: 1, fail: 2 };

const STARTING: ReadinessCheck = { name: 'routing', status: 'fail', detail: 'starting' };

/** While no worker answers: nothing is known of the components, and no adapter is there. */
const NO_WORKER: Readiness = {
  ready: false,
  store: { name: 'store', status: 'fail', detail: 'starting' },
  backend: { name: 'backend', status: 'fail', detail: 'starting' },
  adapters: [],
  paymentProviders: [],
  authorizationProviders: [],
};

/**
 * All workers have the same components in the same order. Undefined: a worker does not answer. Its
 * components are those of the others, but its adapters are out of reach.
 */
export function mergeReadiness(found: readonly (Readiness | undefined)[]): Readiness {
  const [first, ...others] = found.filter((readiness) => readiness !== undefined);
  if (first === undefined) return NO_WORKER;
  const silent = others.length + 1 < found.length;
  const list = (name: 'adapters' | 'paymentProviders' | 'authorizationProviders'): readonly ReadinessCheck[] =>
    first[name].map((check, i) => worst([check, ...others.map((other) => other[name][i] ?? check)]) ?? check);
  return {
    ready: !silent && first.ready && others.every(({ ready }) => ready),
    store: worst([first.store, ...others.map(({ store }) => store)]) ?? first.store,
    backend: worst([first.backend, ...others.map(({ backend }) => backend)]) ?? first.backend,
    adapters: silent ? first.adapters.map(({ name }) => unreachable(name)) : list('adapters'),
    paymentProviders: list('paymentProviders'),
    authorizationProviders: list('authorizationProviders'),
  };
}

/** What `/routing` says of all workers. Undefined: one that does not answer. */
export function mergeRouting(found: readonly (ReadinessCheck | undefined)[]): ReadinessCheck {
  return worst(found.map((check) => check ?? unreachable('routing'))) ?? STARTING;
}

function unreachable(name: string): ReadinessCheck {
  return { name, status: 'fail', detail: 'adapter-unreachable' };
}

/** The worst of the checks of one component, the first of equal ones. */
function worst(checks: readonly ReadinessCheck[]): ReadinessCheck | undefined {
  return checks.reduce<ReadinessCheck | undefined>(
    (found, check) => (found === undefined || SEVERITY[check.status] > SEVERITY[found.status] ? check : found),
    undefined,
  );
}
