/** The metrics of an injector, in the text format of Prometheus. */

import { Counter, collectDefaultMetrics, Gauge, Registry } from '@prometheus-io/client';
import { createDurations } from '../../telemetry/metrics/durations.ts';
import { REVIEW_RESULTS } from './review.ts';

/** `malformed`: no review could be read, and the answer was an HTTP status. */
const RESULTS = [...REVIEW_RESULTS, 'malformed'] as const;
const RELOADED = ['certificate', 'client_authority', 'options'] as const;

export type Reloaded = (typeof RELOADED)[number];

export type InjectorMetrics = ReturnType<typeof injectorMetrics>;

/** `expiresAt`: of the certificate that is served, milliseconds since 1970. */
export function injectorMetrics(expiresAt: () => number) {
  const registry = new Registry();
  const registers = [registry];
  const durations = createDurations();
  collectDefaultMetrics({ register: registry });
  const reviews = new Counter({
    name: 'acg_injector_reviews_total',
    help: 'Admission reviews by result; malformed ones were refused with an HTTP status.',
    labelNames: ['result'] as const,
    registers,
  });
  const reloads = new Counter({
    name: 'acg_injector_reloads_total',
    help: 'Changes of mounted files by result; after a rejected one the last good content stays.',
    labelNames: ['what', 'result'] as const,
    registers,
  });
  const seconds = durations.histogram(
    'acg_injector_review_seconds',
    'Time from the last byte of a request to its answer.',
    'result',
  );
  // An unused label is not shown: an alert on its growth needs the zero.
  for (const result of RESULTS) reviews.inc({ result }, 0);
  for (const what of RELOADED) for (const result of ['reloaded', 'rejected']) reloads.inc({ what, result }, 0);
  new Gauge({
    name: 'acg_injector_certificate_expiry_seconds',
    help: 'Seconds until the certificate that is served expires; negative when it has.',
    registers,
    collect() {
      this.set((expiresAt() - Date.now()) / 1_000);
    },
  });
  return {
    reviewed(result: (typeof REVIEW_RESULTS)[number], ms: number): void {
      reviews.inc({ result });
      seconds(result).took(ms);
    },
    /** A request got no answer of admission. */
    malformed: () => reviews.inc({ result: 'malformed' }),
    reloaded: (what: Reloaded, result: 'reloaded' | 'rejected') => reloads.inc({ what, result }),
    contentType: registry.contentType,
    text: async () => [await registry.metrics(), durations.text()].join('\n'),
  };
}
