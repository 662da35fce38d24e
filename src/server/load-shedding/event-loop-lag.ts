/** Measures the turns of the event loop, and tells how much new work one has room for. */

import { performance } from 'node:perf_hooks';

/**
 * How much work a turn may take before further calls wait for the next one, milliseconds. A call
 * takes several turns, and a request that passes or a paid call waits for each of them. A
 * connection waits as well: the loop accepts one a turn, and a probe often brings its own. Much
 * shorter turns make calls dearer.
 */
export const TURN_MS = 0.5;
/** What a turn has at least for calls that wait, milliseconds, however long its work takes. */
export const LEAST_MS = 0.25;

/** What the turns need of the runtime; a simulation brings its own. */
interface TurnRuntime {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Milliseconds that this thread has been on a core. */
  worked(): number;
  /** Calls back at the end of the turn, in the order of the calls. */
  atEnd(callback: () => void): unknown;
}

const THIS_THREAD: TurnRuntime = {
  now: () => performance.now(),
  worked() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
  atEnd: setImmediate,
};

/**
 * Measures the turns of the event loop in which calls come in or begin. All requests of a turn were
 * waiting when it began, so its length is how long one waits before its work begins; a call that
 * takes eight turns waits eight times. One `setImmediate` marks the end of such a turn; turns
 * without calls cost nothing and do not count.
 *
 * Only work counts. A process whose core is taken away, by its neighbours or by the limit of its
 * container, does not get it back by beginning less, nor by waiting for a disk. The time that
 * refusals take does not count either: a limit that followed it would fall because calls are
 * refused, and refuse more.
 */
export class Turns {
  readonly #runtime: TurnRuntime;
  #open = false;
  #came = false;
  /** When the turn began, by the clock and by the work of the thread, milliseconds. */
  #beganAt = 0;
  #began = 0;
  /** Work of this turn, milliseconds: refusals, and calls that had waited and began. */
  #refusedMs = 0;
  #servedMs = 0;
  /** Until when calls that wait may begin, by the work of the thread. */
  #serveUntil = 0;
  #ms = 0;
  #count = 0;

  constructor(runtime: TurnRuntime = THIS_THREAD) {
    this.#runtime = runtime;
  }

  /** A call came in, or one that waited may begin: this turn is measured. */
  came(): void {
    if (!this.#open) {
      this.#open = true;
      // What was refused in a turn that is not measured was no part of it.
      this.#refusedMs = 0;
      this.#begin(this.#runtime.worked());
      this.#serveUntil = this.#began + TURN_MS;
    }
    this.#came = true;
  }

  /** Refuses a call: that is no work of the turn. */
  refusing(refuse: () => void): void {
    const began = this.#runtime.worked();
    refuse();
    this.#refusedMs += this.#runtime.worked() - began;
  }

  /** Whether a call that comes in may begin in this turn. */
  hasRoom(): boolean {
    // The clock is cheaper to read, and never behind the work.
    if (this.#runtime.now() - this.#beganAt < TURN_MS) return true;
    return this.#runtime.worked() - this.#began - this.#refusedMs < TURN_MS;
  }

  /** The same at the end of the turn, for calls that wait. */
  hasRoomForWaiting(): boolean {
    const worked = this.#runtime.worked();
    this.#servedMs = worked - this.#began;
    return worked < this.#serveUntil;
  }

  /** The mean work of those that ended since the last call, milliseconds; 0 if there was none. */
  take(): number {
    const mean = this.#count === 0 ? 0 : this.#ms / this.#count;
    this.#ms = 0;
    this.#count = 0;
    return mean;
  }

  #begin(worked: number): void {
    this.#came = false;
    this.#began = worked;
    this.#beganAt = this.#runtime.now();
    this.#runtime.atEnd(this.#next);
  }

  readonly #next = (): void => {
    const worked = this.#runtime.worked();
    const ms = worked - this.#began - this.#refusedMs;
    this.#ms += ms;
    this.#count += 1;
    // Calls that wait get what other work left of the turn, and as much as refusals took: a flood
    // of what is refused leaves half of the time to calls that are served.
    const left = TURN_MS - (ms - this.#servedMs);
    this.#serveUntil = worked + Math.max(LEAST_MS, left, this.#refusedMs);
    this.#refusedMs = 0;
    this.#servedMs = 0;
    // The next turn is measured from its beginning, not from its first call: work before the call
    // delays it as well.
    this.#open = this.#came;
    if (this.#came) this.#begin(worked);
  };
}

/** How the event loop did since the last reading. */
export interface EventLoopLag {
  /** The mean work of the turns in which calls came in, milliseconds; 0 when none came. */
  readonly turnMs: number;
  /** Share of the time in which it had something to do, 0 to 1. */
  readonly busy: number;
}

/** Reads the event loop of this process. */
export function readEventLoopLag(turns: Turns): () => EventLoopLag {
  let before = performance.eventLoopUtilization();
  return function read() {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return { turnMs: turns.take(), busy: utilization };
  };
}
