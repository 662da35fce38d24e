/**
 * The other end of `unwatched.ts`: calls the functions of the module that it was started with, one
 * after the other.
 */
import { parentPort, workerData } from 'node:worker_threads';

export interface Call {
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly failure?: unknown;
}

const functions: Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>> = await import(
  String(workerData)
);
let last: Promise<unknown> = Promise.resolve();

parentPort?.on('message', ({ id, name, args }: Call) => {
  last = last.then(async () => {
    const answer = await functions[name]?.(...args).then(
      (result): Answer => ({ id, result }),
      (failure: unknown): Answer => ({ id, failure }),
    );
    parentPort?.postMessage(answer);
  });
});
