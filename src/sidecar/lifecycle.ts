/**
 * The lifecycle of a process in its pod (contract 3, shutdown): open, then draining (readiness
 * fails, new calls are still served until endpoints no longer list the pod), then closed (nothing
 * new; running work may finish), then drained (nothing runs). A process that is not ended then
 * opens again. The pipeline counts its work here, and the hooks of the pod drain it.
 */

/** How long work that was ended early may take to answer and to write down how it ended, ms. */
const WRITE_DOWN_MS = 2_000;

type LifecycleState = 'open' | 'draining' | 'closed' | 'drained';

/** What a drain does, in this order. */
export interface DrainSteps {
  /** How long new calls are still served, milliseconds. */
  readonly propagationMs: number;
  /** Stops the listeners; called when the gate closes. */
  readonly stopListening: () => void;
  /** How long running calls may take after that, milliseconds. */
  readonly finishMs: number;
  /** Ends what the calls that still run wait for, so that they are answered and written down. */
  readonly interrupt?: () => void;
  /** Closes the connections that are still open. */
  readonly disconnect?: () => void;
}

export type Lifecycle = ReturnType<typeof createLifecycle>;

export function createLifecycle() {
  let state: LifecycleState = 'open';
  let running = 0;
  const waiting = new Set<() => void>();
  const listeners: (() => void)[] = [];
  let drained: Promise<void> | undefined;

  /** Resolves when nothing runs, or after `atMostMs`. */
  const idle = (atMostMs: number): Promise<void> =>
    new Promise((resolve) => {
      if (running === 0) return resolve();
      const end = (): void => {
        clearTimeout(timer);
        waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, atMostMs);
      waiting.add(end);
    });
  const runDrain = async (steps: DrainSteps): Promise<void> => {
    state = 'draining';
    for (const listener of listeners) listener();
    await new Promise((resolve) => setTimeout(resolve, steps.propagationMs));
    state = 'closed';
    steps.stopListening();
    await idle(steps.finishMs);
    if (running > 0) {
      // Before its connection is closed: a call that has paid is told so.
      steps.interrupt?.();
      await idle(WRITE_DOWN_MS);
    }
    steps.disconnect?.();
    await idle(WRITE_DOWN_MS);
    state = 'drained';
  };
  return {
    state: () => state,
    /** The settlement gate: whether a new call may start and money may start to move. */
    accepting: () => state === 'open' || state === 'draining',
    /** From the begin of the drain, until the process is open again. */
    draining: () => state !== 'open',
    /** Calls `listener` at the begin of each drain, or now if one has begun. It must not throw. */
    onDraining(listener: () => void): void {
      listeners.push(listener);
      if (state !== 'open') listener();
    },
    /** Counts work that must end before the process does; the result notes its end. */
    begin() {
      running += 1;
      let ended = false;
      return (): void => {
        if (ended) return;
        ended = true;
        running -= 1;
        if (running === 0) for (const end of waiting) end();
      };
    },
    idle,
    /** Drains, once until it is open again; resolves when nothing runs any more. */
    drain: (steps: DrainSteps): Promise<void> => (drained ??= runDrain(steps)),
    /** Lets calls in again after a drain. */
    reopen(): void {
      state = 'open';
      drained = undefined;
    },
  };
}
