/** Immediates for a simulation, which waits for one after each of millions of steps. */

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
