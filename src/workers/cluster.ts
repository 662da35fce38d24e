/** Workers as processes of Node's cluster: the primary accepts connections and hands them over. */

import cluster, { type Worker } from 'node:cluster';
import { partOf } from '../part-of.ts';
import type { ChannelEnd } from './channel.ts';
import type { WorkerProcess } from './pool.ts';

/** What a worker says once it listens to messages: Node drops those that come before. */
const LISTENS = 'listens';

/** Whether this process is a worker. */
export function isWorker(): boolean {
  return cluster.isWorker;
}

/** The flag of Node for the part of the memory that the old objects of a process may take. */
const HEAP_SHARE = /^(--max[-_]old[-_]space[-_]size[-_]percentage=)(\d+(?:\.\d+)?)$/;

/**
 * The flags of Node for one of several workers, which have the memory of the container together.
 * @param flags those of the primary
 */
export function flagsOfWorker(flags: readonly string[], processes: number): readonly string[] {
  return flags.map((flag) =>
    flag.replace(HEAP_SHARE, (_, name: string, percent: string) => `${name}${partOf(Number(percent), processes)}`),
  );
}

/** Starts one of so many workers: the program of this process with its arguments. */
export function forkWorker(processes: number): WorkerProcess {
  // In turn, whatever the environment says: the system's own way favours few of the processes.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ serialization: 'advanced', execArgv: [...flagsOfWorker(process.execArgv, processes)] });
  const worker = cluster.fork();
  // A worker that ends breaks its channel; its end is what counts.
  worker.on('error', () => undefined);
  closeUntaken(worker);
  let waiting: object[] | undefined = [];
  const send = (message: object): void => void worker.send(message, undefined, () => undefined);
  worker.on('message', (message: unknown) => {
    if (message !== LISTENS) return;
    for (const early of waiting ?? []) send(early);
    waiting = undefined;
  });
  return {
    pid: worker.process.pid ?? 0,
    send: (message) => (waiting === undefined ? send(message) : void waiting.push(message)),
    onMessage: (listener) => worker.on('message', listener),
    onEnd(listener) {
      worker.on('exit', (code, signal) => listener({ code, signal }));
      // Where the system starts no process there is none that exits.
      if (worker.process.pid === undefined) setImmediate(() => listener({ code: null, signal: null }));
    },
    kill: () => worker.process.kill('SIGKILL'),
  };
}

/** What Node's cluster sends with a connection that a worker is to take. */
interface HandedOver {
  readonly cmd?: unknown;
  readonly act?: unknown;
  /** The port that it came to: a worker is handed the next one once it answered for this one. */
  readonly key?: unknown;
}

/**
 * Closes what a worker was handed and had not taken when it was killed. Node keeps that connection
 * open for good (26.10), so the agent at its other end would wait without end. Closing one that was
 * taken does nothing.
 */
function closeUntaken(worker: Worker): void {
  const { process: child } = worker;
  const untaken = new Map<unknown, unknown>();
  const { send } = child;
  child.send = (...given: unknown[]) => {
    const [message, handle] = given;
    const { cmd, act, key }: HandedOver = typeof message === 'object' && message !== null ? message : {};
    if (cmd === 'NODE_CLUSTER' && act === 'newconn') untaken.set(key, handle);
    return Reflect.apply(send, child, given);
  };
  worker.on('exit', () => {
    for (const handle of untaken.values()) if (isClosable(handle)) handle.close();
  });
}

function isClosable(handle: unknown): handle is { close(): void } {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}

/** The worker's end of the channel. */
interface PrimaryChannel extends ChannelEnd {
  readonly worker: number;
  /** Resolves when the primary is gone. Without this the process would end at once then. */
  readonly primaryGone: Promise<void>;
}

/** The channel of this process to its primary. @throws Error in a process that is no worker */
export function channelToPrimary(): PrimaryChannel {
  const { worker } = cluster;
  if (worker === undefined) throw new Error('this process is no worker');
  return {
    worker: worker.id,
    send: (message) => void worker.send(message, undefined, () => undefined),
    onMessage(listener) {
      worker.on('message', listener);
      worker.send(LISTENS);
    },
    primaryGone: new Promise((resolve) => {
      worker.once('disconnect', () => {
        // Node ends a worker whose primary is gone, unless it left of its own will.
        worker.exitedAfterDisconnect = true;
        resolve();
      });
    }),
  };
}
