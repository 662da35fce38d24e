/**
 * The life of the process in its pod (CONTRACT 3, shutdown): open, then draining (readiness fails, new calls are still served while
 * endpoints forget us), then closed (nothing new; what runs may finish).
 */
export interface Lifecycle {
  /** The settlement gate: whether a new call may start and money may start to move. */
  accepting(): boolean;
  draining(): boolean;
  /** Counts a piece of work that must end before the process does; call the result when it ended. */
  begin(): () => void;
  /** Starts to drain, once; resolves when nothing runs any more, or after `finishMs`. */
  drain(bounds: DrainBounds): Promise<void>;
}

export interface DrainBounds {
  /** How long new calls are still served, milliseconds. */
  readonly propagationMs: number;
  /** How long running calls may take after that, milliseconds. */
  readonly finishMs: number;
  /** Stops the listeners; called when the gate closes. */
  readonly stopListening: () => void;
}

export function createLifecycle(): Lifecycle {
  let state: 'open' | 'draining' | 'closed' = 'open';
  let running = 0;
  let idle: (() => void) | undefined;
  let drained: Promise<void> | undefined;

  const quiet = (finishMs: number): Promise<void> =>
    new Promise((resolve) => {
      if (running === 0) return resolve();
      const timer = setTimeout(resolve, finishMs);
      idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  return {
    accepting: () => state !== 'closed',
    draining: () => state !== 'open',
    begin() {
      running += 1;
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        running -= 1;
        if (running === 0) idle?.();
      };
    },
    drain({ propagationMs, finishMs, stopListening }) {
      drained ??= (async () => {
        state = 'draining';
        await new Promise((resolve) => setTimeout(resolve, propagationMs));
        state = 'closed';
        stopListening();
        await quiet(finishMs);
      })();
      return drained;
    },
  };
}
