/** Gives the memory back that only a start needs. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * One full collection: the heap of a start is a third larger than what a gateway keeps, and V8
 * shrinks it only after minutes under load. Takes some 30 ms, so it runs before the first call.
 */
export function collectStart(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
