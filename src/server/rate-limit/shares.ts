/** Shares a bound among client networks, so that none takes all of it. */

import { Counts } from '../../counts.ts';

/**
 * Counts places by client. A client gets another place while it holds fewer than are free: one
 * alone takes half, the next one a third, and a few together never take the last place.
 */
export class Shares {
  readonly #bound: () => number;
  readonly #held = new Counts();
  #taken = 0;

  /** `bound`: places of all clients together; asked each time, because it may change. */
  constructor(bound: () => number) {
    this.#bound = bound;
  }

  /** Takes a place for the client, until `leave`. False: it has its share. */
  enter(client: string): boolean {
    if (this.#held.of(client) >= this.#bound() - this.#taken) return false;
    this.#held.add([client], 1);
    this.#taken += 1;
    return true;
  }

  /** Gives back one place that `enter` took for the client. */
  leave(client: string): void {
    if (this.#held.of(client) === 0) return;
    this.#held.add([client], -1);
    this.#taken -= 1;
  }

  get taken(): number {
    return this.#taken;
  }
}
