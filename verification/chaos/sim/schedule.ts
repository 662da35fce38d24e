/** The scheduler of the simulation: one step at a time, on a clock of its own. */

import { setImmediate as nextImmediate } from 'node:timers/promises';

/** Where the clock of every run begins, Unix milliseconds. */
const BEGIN_MS = 1_800_000_000_000;
/**
 * The least that any wait takes, milliseconds: a smaller step would not change a number as large as
 * today's time.
 */
const GRAIN_MS = 1 / 1_024;

/**
 * `effect`: a request arrives and takes effect. `reply`: its answer arrives at the caller. `wake`:
 * a timer ends. `world`: anything without a process. Effects and replies of gateways are the points
 * at which a process can be ended or paused.
 */
type StepKind = 'effect' | 'reply' | 'wake' | 'world';

/** One event at a time. */
export interface Step {
  readonly kind: StepKind;
  readonly label: string;
  /** The process of the step; undefined for the world. */
  readonly actor: Actor | undefined;
  readonly run: () => void;
}

/** A process, as the schedule sees it. */
export interface Actor {
  readonly name: string;
  readonly alive: boolean;
  /** Virtual milliseconds; none of its steps runs before. */
  readonly pausedUntil: number;
}

interface Scheduled extends Step {
  readonly at: number;
  readonly order: number;
}

/**
 * What a schedule asks for: whether a process ends at a step, and what comes next when only timers
 * of the world are left.
 */
export interface Conductor {
  /** Before each effect and reply of a process that runs: here it may die or be paused. */
  injectFault(step: Step): void;
  /**
   * Whether a request that is on its way arrives although its sender has just died or stands still.
   */
  arrivesWithoutSender(step: Step): boolean;
  /** The next round of a reconciler, if one would find something. */
  nextRound(): { readonly at: number; readonly run: () => void } | undefined;
}

/** The one clock and the one order of all steps. Virtual time passes only from step to step. */
export class Schedule {
  now = BEGIN_MS;
  /** One line for each step, when the run is traced. */
  readonly trace: string[] | undefined;
  readonly #heap: Scheduled[] = [];
  readonly #afterMicrotasks: () => Promise<void>;
  #order = 0;
  steps = 0;

  /** `afterMicrotasks`: resolves when what a step began can go on no further by itself. */
  constructor(traced: boolean, afterMicrotasks: () => Promise<void> = nextImmediate) {
    this.trace = traced ? [] : undefined;
    this.#afterMicrotasks = afterMicrotasks;
  }

  /** Plans a step, `ms` from now. */
  after(ms: number, step: Step): void {
    this.#push({ ...step, at: this.now + Math.max(ms, GRAIN_MS), order: this.#order++ });
  }

  /** Writes a line to the trace. */
  log(line: string): void {
    this.trace?.push(`${(this.now - BEGIN_MS).toFixed(1).padStart(10)} ${line}`);
  }

  /**
   * Runs the steps in order, until a time or until none is left. Resolves false after `mostSteps`
   * steps.
   */
  async run(conductor: Conductor, untilMs: number, mostSteps: number): Promise<boolean> {
    for (let left = mostSteps; left > 0; left -= 1) {
      const top = this.#heap[0];
      const round = conductor.nextRound();
      const next = Math.min(top?.at ?? Number.POSITIVE_INFINITY, round?.at ?? Number.POSITIVE_INFINITY);
      if (next > untilMs) {
        if (Number.isFinite(untilMs)) this.now = Math.max(this.now, untilMs);
        return true;
      }
      this.now = Math.max(this.now, next);
      if (round !== undefined && round.at === next) {
        round.run();
        await this.#afterMicrotasks();
        continue;
      }
      const step = this.#pop();
      if (step === undefined) return true;
      if (this.#happens(step, conductor)) {
        this.steps += 1;
        if (this.trace !== undefined) this.log(`${step.actor?.name ?? '-'} ${step.kind} ${step.label}`);
        step.run();
        // An effect only plans its reply; every other step lets code of the gateway run to its next
        // await.
        if (step.kind !== 'effect') await this.#afterMicrotasks();
      }
    }
    return false;
  }

  #happens(step: Scheduled, conductor: Conductor): boolean {
    const { actor, kind } = step;
    if (actor === undefined) return true;
    const runs = (): boolean => actor.alive && actor.pausedUntil <= this.now;
    if (kind !== 'wake' && runs()) conductor.injectFault(step);
    if (runs()) return true;
    if (kind === 'effect' && conductor.arrivesWithoutSender(step)) return true;
    if (actor.alive) this.#push({ ...step, at: actor.pausedUntil });
    return false;
  }

  #push(step: Scheduled): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(step);
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || !earlier(step, parent)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = step;
  }

  #pop(): Scheduled | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const [one, other] = [heap[left], heap[left + 1]];
      if (one === undefined) break;
      const [child, index] = other !== undefined && earlier(other, one) ? [other, left + 1] : [one, left];
      if (!earlier(child, last)) break;
      heap[at] = child;
      at = index;
    }
    heap[at] = last;
    return top;
  }
}

function earlier(one: Scheduled, other: Scheduled): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** How many are planned at once. */
const TOGETHER = 100;
let planned = 0;
const waiting: (() => void)[] = [];

/**
 * Resolves in an immediate, before which Node has run all microtasks and all of `nextTick`. Between
 * immediates that were planned together Node looks for no input, which takes longer than most
 * steps. Code that plans immediates itself would wait behind those of many steps.
 */
export function nextOfManyImmediates(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push(resolve);
  if (planned < waiting.length) {
    planned += TOGETHER;
    for (let one = 0; one < TOGETHER; one += 1) setImmediate(turn);
  }
  return promise;
}

function turn(): void {
  planned -= 1;
  waiting.shift()?.();
}
