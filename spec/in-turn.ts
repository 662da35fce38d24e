/** Loads the specs of one process one after the other. */

import { describe } from 'node:test';

/** Ends when the specs before have been loaded. */
let turn: Promise<unknown> = Promise.resolve();

/**
 * Makes a spec a suite of its own in a process that it shares. One is loaded after the other: the
 * runner knows by the chain of promises what was registered by which suite, and modules that two of
 * them wait for would mix up the chains.
 */
export function inTurn(spec: string, load: () => Promise<unknown>): void {
  describe(spec, async () => {
    const before = turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    turn = promise;
    // A promise of this suite: behind one of another suite everything would be that one's.
    await new Promise((come) => before.then(come));
    try {
      await load();
    } finally {
      resolve();
    }
  });
}
