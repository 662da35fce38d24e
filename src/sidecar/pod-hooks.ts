/**
 * The preStop hooks of a pod, which the kubelet asks the gateway and waits for (contract 3,
 * shutdown). All containers of a pod that ends are asked at the same time, and each is stopped when
 * its hook is answered: so a late answer to `/release` keeps the backend for the last calls.
 */

import { connect } from 'node:net';
import type { DrainSteps, Fence, Lifecycle } from './lifecycle.ts';

/** How long `/release` waits for `/drain`, milliseconds: both start together, in either order. */
export const DRAIN_ARRIVES_MS = 300;
/** How long the release of a backend that restarts alone waits for free exchanges, milliseconds. */
export const FREE_CALLS_MS = 10_000;
/** Between two looks at the calls that run, milliseconds. */
const LOOK_EVERY_MS = 20;
/** How long a drained process waits for its signal before it opens again, milliseconds. */
export const SIGNAL_COMES_MS = 30_000;

export interface PodHooks {
  /** The value that the header of a hook must have; undefined: `1`. */
  readonly key?: string;
  /** The pod, or the gateway alone, ends: resolves when no call runs or the waits are over. */
  drain(): Promise<void>;
  /** The backend's container ends, with its pod or alone: resolves when the container may end. */
  release(): Promise<void>;
}

/** The hooks, with their failure and their end. */
export interface OpenedPodHooks extends Omit<PodHooks, 'key'> {
  /** Rejects when a drained process should open again and cannot. */
  readonly failed: Promise<never>;
  /** The process ends: it does not open again. */
  stop(): void;
}

/** Something worth a log line. */
export type HandshakeNote =
  | 'draining'
  | 'drained'
  | 'open again'
  | 'fenced'
  | 'backend released'
  | 'backend replaced'
  | 'backend not replaced in time';

/** Exchanges with the backend that are paid for, or may be at any moment, and all others. */
interface RunningExchanges {
  readonly paid: number;
  readonly free: number;
}

interface PodHookParts {
  readonly lifecycle: Pick<Lifecycle, 'draining' | 'drain' | 'reopen'>;
  readonly fence: Pick<Fence, 'raise' | 'release' | 'lower'>;
  /** How the process drains; asked when it begins. */
  readonly drainSteps: () => DrainSteps;
  readonly running: () => RunningExchanges;
  /** Runs the hook that the backend's container had of its own. Must not reject. */
  readonly preStop: () => Promise<void>;
  /** Connects to the backend. */
  readonly look: () => Promise<ConnectionEnd>;
  /** Called before held calls go on, with a backend that takes connections again. */
  readonly backendIsBack: () => Promise<void>;
  /** How long the container of the backend may take to end, milliseconds. */
  readonly merchantGraceMs: number;
  /** How long its pod may take to end, hooks included, milliseconds. */
  readonly podGraceMs: number;
  /** How long after a drain began its signal may come, milliseconds; undefined: not known. */
  readonly endsWithinMs?: number | undefined;
  /** Opens the listeners that the drain closed. */
  readonly listenAgain: () => Promise<void>;
  readonly note: (note: HandshakeNote) => void;
  /** How long a drained process waits for its signal, milliseconds. */
  readonly signalComesMs?: number;
}

/** Opens the hooks of a pod. Signals of the process drain it through them as well. */
export function openPodHooks(parts: PodHookParts): OpenedPodHooks {
  const { lifecycle, fence, note, signalComesMs = SIGNAL_COMES_MS } = parts;
  const failed = Promise.withResolvers<never>();
  // Without a listener yet, as while everything is opened, a rejection would end the process.
  failed.promise.catch(() => undefined);
  let stopped = false;
  let drainBegan = Promise.withResolvers<void>();
  let drained: Promise<void> | undefined;
  let released: Promise<void> | undefined;
  /** The backend was released for the end of its pod, and ends before the signal comes. */
  let backendEnds = false;
  let drainingSince = 0;
  let reopening: NodeJS.Timeout | undefined;
  /** Ends the wait for the backend that was released last. */
  let watching = new AbortController();

  const drain = (): Promise<void> => (drained ??= runDrain());
  const runDrain = async (): Promise<void> => {
    note('draining');
    drainingSince = performance.now();
    const ended = lifecycle.drain(parts.drainSteps());
    drainBegan.resolve();
    await ended;
    note('drained');
    awaitSignal();
  };
  const awaitSignal = (): void => {
    clearTimeout(reopening);
    if (stopped) return;
    const comesMs = signalComesMs + (backendEnds ? parts.merchantGraceMs : 0);
    // The pod may take its whole grace: another container, or a hook of its own, may be slow.
    const atMostMs = Math.max(comesMs, (parts.endsWithinMs ?? 0) - (performance.now() - drainingSince));
    reopening = setTimeout(() => void reopen().catch(failed.reject), atMostMs);
  };
  const reopen = async (): Promise<void> => {
    await parts.listenAgain();
    drainBegan = Promise.withResolvers();
    drained = undefined;
    backendEnds = false;
    lifecycle.reopen();
    note('open again');
  };

  const release = (): Promise<void> =>
    (released ??= runRelease().finally(() => {
      released = undefined;
    }));
  const runRelease = async (): Promise<void> => {
    const began = performance.now();
    const drains = lifecycle.draining() || (await isFirst(drainBegan.promise, sleep(DRAIN_ARRIVES_MS)));
    if (drains) await releaseWithPod();
    else await releaseAlone(began);
  };
  const releaseWithPod = async (): Promise<void> => {
    backendEnds = true;
    await drain();
    await parts.preStop();
    // The time that the backend may take to end begins now.
    awaitSignal();
  };
  const releaseAlone = async (began: number): Promise<void> => {
    note('fenced');
    watching.abort();
    fence.raise();
    if (await isFirst(drainBegan.promise, untilIdle())) {
      // The pod ends after all: the backend stays until the drain is over.
      fence.lower();
      return releaseWithPod();
    }
    fence.release();
    await parts.preStop();
    note('backend released');
    void untilReplaced(began);
  };
  const untilIdle = async (): Promise<void> => {
    const { finishMs } = parts.drainSteps();
    const waits = { paid: true, free: true };
    const timers = [
      setTimeout(() => {
        waits.free = false;
      }, FREE_CALLS_MS),
      setTimeout(() => {
        waits.paid = false;
      }, finishMs),
    ];
    const busy = (): boolean => {
      const { paid, free } = parts.running();
      return (waits.paid && paid > 0) || (waits.free && free > 0);
    };
    while (busy() && !lifecycle.draining()) await sleep(LOOK_EVERY_MS);
    for (const timer of timers) clearTimeout(timer);
  };
  const untilReplaced = async (began: number): Promise<void> => {
    watching = new AbortController();
    const { signal } = watching;
    const atMostMs = Math.max(0, parts.podGraceMs - (performance.now() - began));
    const replaced = await backendReplaced({ look: parts.look, atMostMs }, signal);
    if (replaced) await parts.backendIsBack();
    // The backend that came back may have been released again meanwhile.
    if (signal.aborted) return;
    fence.lower();
    note(replaced ? 'backend replaced' : 'backend not replaced in time');
  };
  return {
    drain,
    release,
    failed: failed.promise,
    stop() {
      stopped = true;
      watching.abort();
      clearTimeout(reopening);
    },
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Whether `first` is settled before `other`. */
function isFirst(first: Promise<void>, other: Promise<void>): Promise<boolean> {
  return Promise.race([first.then(() => true), other.then(() => false)]);
}

/** Between two connections, milliseconds: a container takes longer to come back. */
const CONNECT_EVERY_MS = 100;
/** Longest wait for one connection, milliseconds. */
const CONNECT_MS = 1_000;

/** How a connection to the backend ended. `silent`: neither accepted nor refused in time. */
export type ConnectionEnd = 'opened' | 'refused' | 'silent';

/**
 * Resolves to true when a connection opens after one was refused: between them the old process
 * closed its port, however long it took to end, and an open port alone may still be the old one's.
 * Resolves to false after `atMostMs`, when no old process can be left, or when `signal` aborts.
 */
export async function backendReplaced(
  { look, atMostMs }: { readonly look: () => Promise<ConnectionEnd>; readonly atMostMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  let over = false;
  const timer = setTimeout(() => {
    over = true;
  }, atMostMs);
  timer.unref();
  let refused = false;
  try {
    while (!over && !signal.aborted) {
      const end = await look();
      if (end === 'opened' && refused) return true;
      refused ||= end === 'refused';
      await new Promise((resolve) => setTimeout(resolve, CONNECT_EVERY_MS).unref());
    }
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/** Opens a connection, sends nothing and closes it. */
export function tryConnection(host: string, port: number, atMostMs = CONNECT_MS): Promise<ConnectionEnd> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: atMostMs });
    const end = (result: ConnectionEnd) => (): void => {
      socket.destroy();
      resolve(result);
    };
    socket.once('connect', end('opened'));
    // A start can block the event loop for longer: an open connection may wait to be noticed.
    socket.once('timeout', () => setImmediate(end('silent')));
    socket.on('error', end('refused'));
  });
}
