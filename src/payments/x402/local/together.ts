/** Does work that waits together: alone while little comes, many at once while much does. */

interface Rounds {
  /** Rounds that run at a time. */
  readonly atOnce: number;
  /** Most items of one round. */
  readonly most: number;
}

/**
 * Takes everything that waits as one round, at once while few rounds run and else as soon as one
 * has ended. The results are in the order of the items, and some may come after the round; an
 * error of a round is that of each item.
 */
export function together<Item, Result>(
  work: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>,
  { atOnce, most }: Rounds,
): (item: Item) => Promise<Result> {
  const waiting: { readonly item: Item; readonly end: PromiseWithResolvers<Result> }[] = [];
  let running = 0;
  const round = async (): Promise<void> => {
    const taken = waiting.splice(0, most);
    running += 1;
    try {
      const results = await work(taken.map(({ item }) => item));
      for (const [at, { end }] of taken.entries()) end.resolve(results[at] as Result | Promise<Result>);
    } catch (error) {
      for (const { end } of taken) end.reject(error);
    }
    running -= 1;
    if (waiting.length > 0) void round();
  };
  return function workTogether(item) {
    const end = Promise.withResolvers<Result>();
    waiting.push({ item, end });
    if (running < atOnce) void round();
    return end.promise;
  };
}
