/** Runs a simulation in a thread that the test runner does not follow. */

import { Worker } from 'node:worker_threads';
import type { Answer, Call } from './unwatched-main.ts';

type AsyncFunction = (...args: never[]) => Promise<unknown>;

type Callable<Module> = { [Name in keyof Module]: Module[Name] extends AsyncFunction ? Name : never }[keyof Module];
type Called<Module, Name extends keyof Module> = Extract<Module[Name], AsyncFunction>;

/**
 * Calls an asynchronous function of the module in the thread. Arguments and result are copied: data
 * only.
 */
export type Unwatched<Module> = <Name extends Callable<Module> & string>(
  name: Name,
  ...args: Parameters<Called<Module, Name>>
) => Promise<Awaited<ReturnType<Called<Module, Name>>>>;

/**
 * Runs a module in a thread of its own. The test runner follows each promise of its thread, which
 * takes half the time of a simulation that makes millions of them. The thread does not keep the
 * process alive.
 */
export function unwatched<Module>(module: URL): Unwatched<Module> {
  const thread = new Worker(new URL('./unwatched-main.ts', import.meta.url), { workerData: module.href });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let number = 0;
  thread.on('message', ({ id, result, failure }: Answer) => {
    const pending = waiting.get(id);
    waiting.delete(id);
    if (waiting.size === 0) thread.unref();
    if (failure === undefined) pending?.resolve(result);
    else pending?.reject(failure);
  });
  thread.on('error', (broken) => {
    for (const pending of waiting.values()) pending.reject(broken);
  });
  thread.unref();
  const call = (name: string, ...args: unknown[]): Promise<unknown> => {
    const pending = Promise.withResolvers<unknown>();
    number += 1;
    waiting.set(number, pending);
    thread.ref();
    thread.postMessage({ id: number, name, args } satisfies Call);
    return pending.promise;
  };
  // What comes back is what the function of this name gives.
  return call as Unwatched<Module>;
}
