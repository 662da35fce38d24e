/** The turns that the sends of one account take, because each needs the nonce after the last. */

/** Runs tasks one after another, each when the one before has ended, also with an error. */
export function turns(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return function inTurn(task) {
    const mine = last.then(task);
    last = mine.catch(() => undefined);
    return mine;
  };
}
