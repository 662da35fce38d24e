/** Counts the results of a run of specs. */

import type { EventData } from 'node:test';
import type { SpecProcess } from './processes.ts';

/** What a spec file came to. */
export interface Result {
  readonly passed: number;
  readonly failed: number;
  /** Names of tests that did not run, with the reason. */
  readonly skipped: readonly string[];
}

type Ended = EventData.TestPass | EventData.TestFail;

/**
 * Counts the events of the test runner by spec file. The runner reports one process after the
 * other, the tests of a suite before the suite, and not which process a test belongs to; so the
 * reports since the last end of a suite or process belong to that end.
 */
export class Tally {
  readonly #processes: ReadonlyMap<string, readonly string[]>;
  readonly #results = new Map<string, { passed: number; failed: number; skipped: string[] }>();
  /** Files whose end was reported. */
  readonly #ended = new Set<string>();
  #pending = nothing();

  /** @param processes what the runner was given */
  constructor(processes: readonly SpecProcess[]) {
    this.#processes = new Map(processes.map(({ file, specs }) => [file, specs]));
    for (const { specs } of processes) for (const spec of specs) this.#results.set(spec, nothing());
  }

  /** A test or a suite that passed. */
  passed(event: EventData.TestPass): void {
    const { name, details, skip, todo } = event;
    if (skip !== undefined || todo !== undefined) this.#pending.skipped.push(`${name}: ${skip ?? todo}`);
    else if (details.type !== 'suite') this.#pending.passed += 1;
    this.#closeSuite(event);
  }

  /**
   * A test or a suite that failed. A suite fails with its tests, and by itself when it cannot be
   * loaded.
   */
  failed(event: EventData.TestFail): void {
    const { details, name, file } = event;
    if (details.type !== 'suite' || failureTypeOf(details.error) !== 'subtestsFailed') this.#pending.failed += 1;
    this.#closeSuite(event);
    // A process that died is reported as a test by the name of its file.
    if (name === file) this.endOfProcess(file);
  }

  /**
   * The end of the events of a process. What no suite took belongs to each of its specs: a process
   * that died may have lost any.
   */
  endOfProcess(file: string | undefined): void {
    const specs = file === undefined ? undefined : this.#processes.get(file);
    if (specs === undefined) return;
    // A shared process reports the end of each spec; the rest belongs to none of them alone.
    const alone = specs.length === 1;
    if (!alone && this.#pending.passed + this.#pending.failed + this.#pending.skipped.length === 0) return;
    for (const spec of specs) this.#add(spec, this.#pending);
    this.#pending = nothing();
  }

  /** By spec file, in the order they were given. A file whose end was never reported has failed. */
  results(): ReadonlyMap<string, Result> {
    return new Map(
      [...this.#results].map(([spec, result]) => [
        spec,
        this.#ended.has(spec) ? result : { ...result, failed: Math.max(1, result.failed) },
      ]),
    );
  }

  #closeSuite({ nesting, name }: Ended): void {
    if (nesting !== 0 || !this.#results.has(name)) return;
    this.#add(name, this.#pending);
    this.#pending = nothing();
  }

  #add(spec: string, { passed, failed, skipped }: Result): void {
    const sum = this.#results.get(spec);
    if (sum === undefined) return;
    this.#ended.add(spec);
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped.push(...skipped);
  }
}

function nothing(): { passed: number; failed: number; skipped: string[] } {
  return { passed: 0, failed: 0, skipped: [] };
}

function failureTypeOf(error: Error): unknown {
  return 'failureType' in error ? error.failureType : undefined;
}
