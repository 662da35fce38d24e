/** Opens the traces of a process: `acg serve` calls it before it wires the gateway. */

import type { Log } from '../telemetry/log/log.ts';
import { collectorFrom } from '../telemetry/traces/collector.ts';
import { PASSED_ON, type Tracing } from '../telemetry/traces/tracing.ts';

/**
 * Traces for the collector that the standard variables of OpenTelemetry name, or none. The exporter
 * is loaded only for a collector, because it costs start time and memory. @throws ConfigError
 */
export async function openTracing(
  env: Readonly<Record<string, string | undefined>>,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<Tracing> {
  const collector = collectorFrom(env);
  if (collector === undefined) return PASSED_ON;
  for (const warning of collector.warnings) log.warn(warning);
  const { openOtlp } = await import('../telemetry/traces/otlp.ts');
  return openOtlp(env, (cause) => log.warn({ err: cause }, 'the collector does not take traces'));
}
