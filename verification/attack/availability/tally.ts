/** Counts and times the answers of a flood. */

import { percentile } from '../../bench/numbers.ts';
import { CALL_KINDS, type CallKind, SERVED } from './blend.ts';
import type { LoadReport } from './load-task.ts';
import type { WireAnswer } from './wire-client.ts';

/** Room for the times of one task, of each kind. */
const MAX_CALLS = 4_000_000;

const goodMs = {
  free: new Float64Array(MAX_CALLS),
  challenge: new Float64Array(MAX_CALLS),
  paid: new Float64Array(MAX_CALLS),
};
const busyMs = new Float64Array(MAX_CALLS);

/**
 * Counts the answers of one task. Only one can be used at a time: they share the room for the
 * times.
 */
export class Tally {
  readonly #sent = { free: 0, challenge: 0, paid: 0 };
  readonly #good = { free: 0, challenge: 0, paid: 0 };
  #busy = 0;
  #wrong = 0;
  #wrongest: string | undefined;

  sent(kind: CallKind): void {
    this.#sent[kind] += 1;
  }

  /** `ms`: how long the call took. */
  answered(kind: CallKind, answer: WireAnswer | Error, ms: number): void {
    if (answer instanceof Error) this.wrong(`${kind}: ${answer.message}`);
    else if (answer.status === SERVED[kind]) goodMs[kind][this.#good[kind]++] = ms;
    else if (answer.status === 503 && answer.head.includes('\r\nretry-after: ')) busyMs[this.#busy++] = ms;
    else this.wrong(`${kind}: ${answer.head} ${answer.body}`);
  }

  wrong(what: string): void {
    this.#wrong += 1;
    this.#wrongest ??= what;
  }

  report(): Omit<LoadReport, 'seconds' | 'unsent' | 'reopened'> {
    const sorted = CALL_KINDS.map((kind) => ({ kind, times: goodMs[kind].subarray(0, this.#good[kind]).toSorted() }));
    const good = sorted.reduce((sum, { times }) => sum + times.length, 0);
    const all = new Float64Array(good);
    let at = 0;
    for (const { times } of sorted) {
      all.set(times, at);
      at += times.length;
    }
    all.sort();
    return {
      kinds: sorted
        .filter(({ kind }) => this.#sent[kind] > 0)
        .map(({ kind, times }) => ({
          kind,
          sent: this.#sent[kind],
          good: times.length,
          p50Ms: percentile(times, 0.5),
          p99Ms: percentile(times, 0.99),
        })),
      good,
      busy: this.#busy,
      wrong: this.#wrong,
      wrongest: this.#wrongest,
      p50Ms: percentile(all, 0.5),
      p99Ms: percentile(all, 0.99),
      busyP99Ms: percentile(busyMs.subarray(0, this.#busy).toSorted(), 0.99),
    };
  }
}
