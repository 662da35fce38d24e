/** Makes one readiness of those of all workers: what fails in one of them fails. */

import type { Readiness } from '../telemetry/health/monitor.ts';
import type { ReadinessCheck } from '../telemetry/health/readiness.ts';

const SEVERITY: Readonly<Record<ReadinessCheck['status'], number>> = { pass: 0, warn: 1, fail: 2 };

/** While no worker serves: nothing is known of the components, and no adapter is there. */
const NO_WORKER: Readiness = {
  ready: false,
  store: { name: 'store', status: 'fail', detail: 'starting' },
  adapters: [],
  paymentProviders: [],
  authorizationProviders: [],
};

/** All workers have the same components in the same order. */
export function mergeReadiness([first, ...others]: readonly Readiness[]): Readiness {
  if (first === undefined) return NO_WORKER;
  const list = (name: 'adapters' | 'paymentProviders' | 'authorizationProviders'): readonly ReadinessCheck[] =>
    first[name].map((check, i) => worst([check, ...others.map((other) => other[name][i] ?? check)]) ?? check);
  return {
    ready: first.ready && others.every(({ ready }) => ready),
    store: worst([first.store, ...others.map(({ store }) => store)]) ?? first.store,
    adapters: list('adapters'),
    paymentProviders: list('paymentProviders'),
    authorizationProviders: list('authorizationProviders'),
  };
}

/** The worst of the checks of one component, the first of equal ones. */
export function worst(checks: readonly ReadinessCheck[]): ReadinessCheck | undefined {
  return checks.reduce<ReadinessCheck | undefined>(
    (found, check) => (found === undefined || SEVERITY[check.status] > SEVERITY[found.status] ? check : found),
    undefined,
  );
}
