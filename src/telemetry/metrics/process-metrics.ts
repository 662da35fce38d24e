import { collectDefaultMetrics, Registry } from 'prom-client';

/** Between two looks at the delay of the event loop, milliseconds. */
const EVENT_LOOP_LOOK_MS = 20;

let registry: Registry | undefined;

/**
 * CPU, memory, garbage collection, event loop and descriptors, under the names that everybody's dashboards know. One registry a
 * process, whatever the number of gateways in it: the observers behind it cannot be stopped. They keep no process alive.
 */
export function processMetrics(): Registry {
  if (registry === undefined) {
    registry = new Registry();
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_LOOK_MS });
  }
  return registry;
}
