/** One process of the simulation and its connection to the store. */

import { StoreError } from '../../../src/store/port/store-error.ts';
import type { Time } from '../../../src/time/time.ts';
import type { Actor, Schedule } from './schedule.ts';

/**
 * How a request to the store goes wrong. `unreceived`: nothing happened. `unanswered`: it happened,
 * the reply is lost. `late`: the caller gives up, and it happens afterwards.
 */
export type StoreFault = 'unreceived' | 'unanswered' | 'late';

/** How long requests take, and whether they arrive. */
export interface Wire {
  /** One way, milliseconds. */
  latencyMs(label: string): number;
  /** For a request to the store. */
  storeFault(label: string): StoreFault | undefined;
}

/** Timeout of a command of the store, milliseconds, as in the real one. */
const COMMAND_TIMEOUT_MS = 500;

/**
 * One gateway process: its calls go out and come back, until it dies. Then its promises never
 * settle and its timers are gone, as those of a killed process are.
 */
export class Process implements Actor {
  readonly name: string;
  readonly #schedule: Schedule;
  readonly #wire: Wire;
  alive = true;
  pausedUntil = 0;
  /** Requests to the store that went wrong. */
  storeFaults = 0;

  constructor(name: string, schedule: Schedule, wire: Wire) {
    this.name = name;
    this.#schedule = schedule;
    this.#wire = wire;
  }

  /**
   * A call over a wire: the effect happens when it arrives, the promise settles when the reply is
   * back.
   */
  call<T>(label: string, effect: () => T, replyMs = 0): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#schedule.after(this.#wire.latencyMs(label), {
        kind: 'effect',
        label,
        actor: this,
        run: () => {
          const settle = outcomeOf(effect, resolve, reject);
          this.#reply(label, replyMs, settle);
        },
      });
    });
  }

  /** The same to the store, which may be silent. */
  ask<T>(label: string, effect: () => T): Promise<T> {
    const fault = this.#wire.storeFault(label);
    if (fault === undefined) return this.call(label, effect);
    this.storeFaults += 1;
    this.#schedule.log(`${this.name} fault ${fault} ${label}`);
    if (fault === 'late')
      this.#schedule.after(COMMAND_TIMEOUT_MS + this.#wire.latencyMs(label) * 50, {
        kind: 'world',
        label: `${label}, late`,
        actor: undefined,
        run: () => void outcomeOf(effect, ignore, ignore),
      });
    const silent = (): never => {
      if (fault === 'unanswered') effect();
      throw new StoreError(`simulated: ${fault}`);
    };
    return this.call(label, silent, fault === 'late' ? COMMAND_TIMEOUT_MS : 0);
  }

  /**
   * The clock of this process: it waits while the process is paused, and never ends once it is
   * dead.
   */
  readonly time: Time = {
    now: () => this.#schedule.now,
    sleep: (ms) =>
      new Promise((resolve) => {
        this.#schedule.after(ms, { kind: 'wake', label: 'timer', actor: this, run: resolve });
      }),
  };

  #reply(label: string, ms: number, run: () => void): void {
    this.#schedule.after(ms + this.#wire.latencyMs(label), { kind: 'reply', label, actor: this, run });
  }
}

function outcomeOf<T>(effect: () => T, resolve: (value: T) => void, reject: (thrown: unknown) => void): () => void {
  try {
    const value = effect();
    return () => resolve(value);
  } catch (thrown) {
    return () => reject(thrown);
  }
}

function ignore(): void {}
