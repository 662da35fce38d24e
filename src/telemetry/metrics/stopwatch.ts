import { Counter, type Registry } from 'prom-client';
import type { Durations } from './durations.ts';

/** Wraps one question to somebody else: the same, but for the time that is taken. */
type Timed = <Asked extends readonly unknown[], Answer>(
  operation: string,
  ask: (...asked: Asked) => Promise<Answer>,
) => (...asked: Asked) => Promise<Answer>;

/** A histogram `<name>_seconds` of all answers and a counter `<name>_failures_total` of those that were none. */
export function stopwatch(
  registry: Registry,
  durations: Durations,
  name: string,
  said: { readonly time: string; readonly failures: string },
): Timed {
  const registers = [registry];
  const labelNames = ['operation'] as const;
  const time = durations.histogram(`${name}_seconds`, said.time, 'operation');
  const failures = new Counter({ name: `${name}_failures_total`, help: said.failures, labelNames, registers });
  return (operation, ask) => {
    const duration = time(operation);
    const failed = failures.labels(operation);
    failed.inc(0);
    return async (...asked) => {
      const since = performance.now();
      try {
        return await ask(...asked);
      } catch (thrown) {
        failed.inc();
        throw thrown;
      } finally {
        duration.took(performance.now() - since);
      }
    };
  };
}
