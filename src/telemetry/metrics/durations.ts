/** Histograms of durations, cheaper to count in than those of @prometheus-io/client. */

import { Counter, type Registry } from '@prometheus-io/client';

/** Upper bounds of the buckets, from a lookup in memory to the longest settlement, seconds. */
const SECONDS = [
  0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

/** Takes the times of one label value, milliseconds. */
export interface Duration {
  took(ms: number): void;
}

export interface Durations {
  /**
   * A histogram in seconds with one label, or a second one `network`. The values are words of the
   * code and the configuration, never a caller's.
   */
  histogram(name: string, help: string, label: string): (value: string, network?: string) => Duration;
  /** All histograms in the text format of Prometheus, version 0.0.4. */
  text(): string;
}

/**
 * Counts durations in plain arrays. The histogram of the library finds its labels anew for each
 * value, which costs ten times as much, and a call passes nine of them.
 */
export function createDurations(): Durations {
  const histograms: (() => string)[] = [];
  return {
    histogram(name, help, label) {
      const children = new Map<string, Buckets>();
      histograms.push(() => {
        const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
        for (const [value, buckets] of children) lines.push(...buckets.lines(name, `${label}="${value}"`));
        return lines.join('\n');
      });
      return (value, network) => {
        // The value with the second label behind it, as a line has them.
        const key = network === undefined ? value : `${value}",network="${network}`;
        const known = children.get(key);
        if (known !== undefined) return known;
        const made = new Buckets();
        children.set(key, made);
        return made;
      };
    },
    text: () => `${histograms.map((write) => write()).join('\n\n')}\n`,
  };
}

class Buckets implements Duration {
  /** A count for each bound, and the last for values above them all. */
  readonly #counts: number[] = [...SECONDS, Number.POSITIVE_INFINITY].map(() => 0);
  #sum = 0;

  took(ms: number): void {
    const seconds = ms / 1_000;
    this.#sum += seconds;
    let at = 0;
    while (at < SECONDS.length && seconds > (SECONDS[at] ?? 0)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  lines(name: string, label: string): readonly string[] {
    let count = 0;
    const lines = this.#counts.map((counted, at) => {
      count += counted;
      return `${name}_bucket{${label},le="${SECONDS[at] ?? '+Inf'}"} ${count}`;
    });
    return [...lines, `${name}_sum{${label}} ${this.#sum}`, `${name}_count{${label}} ${count}`];
  }
}

/** Wraps a call of another service to time it and to count its failures. */
export type Timed = <Asked extends readonly unknown[], Answer>(
  operation: string,
  ask: (...asked: Asked) => Promise<Answer>,
  /** The network that is asked, where there are several: a label of its own. */
  network?: string,
) => (...asked: Asked) => Promise<Answer>;

/** A histogram `<name>_seconds` of all calls, and a counter `<name>_failures_total`. */
export function stopwatch(
  registry: Registry,
  durations: Durations,
  name: string,
  help: { readonly time: string; readonly failures: string },
): Timed {
  const registers = [registry];
  const labelNames = ['operation', 'network'] as const;
  const time = durations.histogram(`${name}_seconds`, help.time, 'operation');
  const failures = new Counter({ name: `${name}_failures_total`, help: help.failures, labelNames, registers });
  return (operation, ask, network) => {
    const duration = time(operation, network);
    const failed = failures.labels(network === undefined ? { operation } : { operation, network });
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
