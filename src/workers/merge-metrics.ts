/**
 * Makes one text of metrics of those of all workers. Counters and histograms are summed; what a
 * gauge means of all of them is in a table.
 */

/** How the values of a gauge become one: `max` and `min` show the worker that is worst off. */
type GaugeRule = 'sum' | 'max' | 'min';

/** Every gauge of a worker and of the primary, by its name or by what the name begins with. */
export const GAUGE_RULES: Readonly<Record<string, GaugeRule>> = {
  acg_answer_buffer_bytes: 'sum',
  acg_answer_buffer_waiting: 'sum',
  acg_backend_breaker: 'max',
  acg_backend_held_connections: 'sum',
  acg_backend_reachable: 'min',
  acg_build_info: 'max',
  acg_calls_in_flight: 'sum',
  acg_calls_waiting: 'sum',
  acg_chain_fault: 'max',
  acg_chain_head_age_seconds: 'max',
  acg_checkout_exchanges_in_flight: 'sum',
  acg_component_status: 'max',
  acg_config_loaded_timestamp_seconds: 'min',
  acg_config_outdated: 'max',
  acg_draining: 'max',
  acg_event_stream_silence_seconds: 'max',
  acg_event_streams: 'sum',
  acg_fence_held: 'sum',
  acg_lifecycle: 'max',
  acg_merchant_exposed: 'max',
  acg_passthrough_event_streams: 'sum',
  acg_passthrough_running: 'sum',
  acg_passthrough_upgrades_open: 'sum',
  acg_passthrough_waiting: 'sum',
  // What the store counts is the same for every worker.
  acg_payments_open: 'max',
  acg_payments_uncertain: 'max',
  acg_payments_undelivered: 'max',
  acg_receipts: 'max',
  acg_relayer_transfers_left: 'min',
  acg_requests_in_flight: 'sum',
  acg_waiting_entries: 'sum',
  acg_workers: 'sum',
  nodejs_active_: 'sum',
  nodejs_eventloop_lag_: 'max',
  nodejs_external_memory_bytes: 'sum',
  nodejs_heap_: 'sum',
  nodejs_version_info: 'max',
  process_heap_bytes: 'sum',
  process_max_fds: 'min',
  process_open_fds: 'sum',
  process_resident_memory_bytes: 'sum',
  process_start_time_seconds: 'min',
  process_virtual_memory_bytes: 'sum',
};

/** A metric with all its time series, each by its name and labels as they are written. */
interface Family {
  readonly help: string;
  readonly type: string;
  readonly series: Map<string, number>;
}

type Families = Map<string, Family>;

/** Merges the metrics of one gateway, scrape after scrape. */
interface MetricsMerger {
  /**
   * `workers`: the text of each worker that serves, by a number that is never used again, undefined
   * where it did not answer; `own`: that of the primary. What a worker counted that has ended, or
   * does not answer, stays in the sums, as far as an earlier scrape saw it: a sum that falls would
   * count again as a whole. Scrapes follow one another: a worker that is not named has ended.
   */
  merge(workers: ReadonlyMap<number, string | undefined>, own: string): string;
}

export function createMetricsMerger(): MetricsMerger {
  const seen = new Map<number, string>();
  const ended: Families = new Map();
  return {
    merge(workers, own) {
      for (const [number, text] of seen)
        if (!workers.has(number)) {
          add(ended, text, isCounted);
          seen.delete(number);
        }
      const merged: Families = new Map();
      for (const [number, text] of workers)
        if (text === undefined) add(merged, seen.get(number) ?? '', isCounted);
        else {
          seen.set(number, text);
          add(merged, text, () => true);
        }
      for (const text of [write(ended), own]) add(merged, text, () => true);
      return write(merged);
    },
  };
}

/**
 * One run at a time: who asks while one runs gets its result. A scrape that ends after a later one
 * would bring back older sums, and would take a worker that began meanwhile for one that ended.
 */
export function oneAtATime<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined;
  return function shareRun() {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
}

function isCounted({ type }: Family): boolean {
  return type !== 'gauge';
}

/** The rule of a gauge; undefined for a name that is not in the table. */
export function ruleOf(name: string): GaugeRule | undefined {
  const known = GAUGE_RULES[name];
  if (known !== undefined) return known;
  const begin = Object.keys(GAUGE_RULES).find((key) => key.endsWith('_') && name.startsWith(key));
  return begin === undefined ? undefined : GAUGE_RULES[begin];
}

/** Adds a text in the format of Prometheus, 0.0.4, as the registry and `durations.ts` write it. */
function add(families: Families, text: string, wanted: (family: Family) => boolean): void {
  let help = '';
  let family: Family | undefined;
  let unite = sum;
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) help = line;
    else if (line.startsWith('# TYPE ')) {
      const [, , name = '', type = ''] = line.split(' ');
      const known = families.get(name) ?? { help, type, series: new Map<string, number>() };
      family = wanted(known) ? known : undefined;
      if (family !== undefined) families.set(name, family);
      unite = type === 'gauge' ? UNITE[ruleOf(name) ?? 'max'] : sum;
    } else if (line !== '' && family !== undefined) {
      const at = line.lastIndexOf(' ');
      const [key, value] = [line.slice(0, at), Number(line.slice(at + 1))];
      const before = family.series.get(key);
      family.series.set(key, before === undefined || Number.isNaN(before) ? value : unite(before, value));
    }
  }
}

const UNITE: Readonly<Record<GaugeRule, (one: number, other: number) => number>> = {
  sum,
  max: (one, other) => (other > one ? other : one),
  min: (one, other) => (other < one ? other : one),
};

function sum(one: number, other: number): number {
  return Number.isNaN(other) ? one : one + other;
}

function write(families: Families): string {
  const texts = [...families].map(([name, { help, type, series }]) =>
    [help, `# TYPE ${name} ${type}`, ...[...series].map(([key, value]) => `${key} ${numberText(value)}`)].join('\n'),
  );
  return `${texts.join('\n\n')}\n`;
}

function numberText(value: number): string {
  return Number.isNaN(value) ? 'Nan' : String(value);
}
