/**
 * The answer if it is there within `ms` milliseconds, else what `late` gives or throws.
 *
 * What has already arrived is read before an answer is called late: in a process that stood still (a burst of calls, a collection of
 * garbage) the timer is due first, and the answer lies in the socket. Calling it lost would refuse calls that nothing is wrong with.
 */
export async function inTime<T, L>(answer: Promise<T>, ms: number, late: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  let read: NodeJS.Immediate | undefined;
  const overdue = new Promise<void>((resolve) => {
    // An event loop polls its sockets between its timers and its immediates.
    timer = setTimeout(() => {
      read = setImmediate(resolve);
    }, ms);
  });
  try {
    return await Promise.race([answer, overdue.then(late)]);
  } finally {
    clearTimeout(timer);
    clearImmediate(read);
  }
}
