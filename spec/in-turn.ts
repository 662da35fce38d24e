/** Loads the specs of one process one after the other. */

import { after, describe } from 'node:test';

/** How long a process may go on after its last test, milliseconds. */
const LINGERS_MS = 30_000;
/** Ends when the specs before have been loaded. */
let turn: Promise<unknown> = Promise.resolve();
let running = 0;

/**
 * Makes a spec a suite of its own in a process that it shares. One is loaded after the other: the
 * runner knows by the chain of promises what was registered by which suite, and modules that two of
 * them wait for would mix up the chains.
 */
export function inTurn(spec: string, load: () => Promise<unknown>): void {
  running += 1;
  describe(spec, async () => {
    after(() => {
      running -= 1;
      if (running === 0) setTimeout(endOfProcess, LINGERS_MS).unref();
    });
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

/** A loop of a test that has timed out goes on, and would keep the process for good. */
function endOfProcess(): void {
  process.stderr.write(`something of a test still runs ${LINGERS_MS / 1_000} s after the last one; the process ends\n`);
  process.exit(1);
}
