/**
 * The lifecycle of a process in its pod (contract 3, shutdown): open, then draining (readiness
 * fails, new calls are still served until endpoints no longer list the pod), then closed (nothing
 * new; running work may finish). The pipeline counts its work here, and `acg serve` drains it.
 */

export interface Lifecycle {
  /** The settlement gate: whether a new call may start and money may start to move. */
  accepting(): boolean;
  draining(): boolean;
  /** Calls `listener` once when the drain begins, or now if it has begun. It must not throw. */
  onDraining(listener: () => void): void;
  /** Counts work that must end before the process does; the result notes its end. */
  begin(): () => void;
  /** Resolves when nothing runs, or after `atMostMs`. */
  idle(atMostMs: number): Promise<void>;
  /** Starts to drain, once; resolves when nothing runs any more, or after `finishMs`. */
  drain(bounds: DrainBounds): Promise<void>;
}

interface DrainBounds {
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
  const waiting = new Set<() => void>();
  const listeners: (() => void)[] = [];
  let drained: Promise<void> | undefined;

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
  return {
    accepting: () => state !== 'closed',
    draining: () => state !== 'open',
    onDraining(listener) {
      if (state === 'open') listeners.push(listener);
      else listener();
    },
    begin() {
      running += 1;
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        running -= 1;
        if (running === 0) for (const end of waiting) end();
      };
    },
    idle,
    drain({ propagationMs, finishMs, stopListening }) {
      drained ??= (async () => {
        state = 'draining';
        for (const listener of listeners) listener();
        await new Promise((resolve) => setTimeout(resolve, propagationMs));
        state = 'closed';
        stopListening();
        await idle(finishMs);
      })();
      return drained;
    },
  };
}
