/**
 * The lifecycle of a process in its pod (contract 3, shutdown): open, then draining (readiness
 * fails, new calls are still served until endpoints no longer list the pod), then closed (nothing
 * new; running work may finish), then drained (nothing runs). A process that is not ended then
 * opens again. The pipeline counts its work here, and the hooks of the pod drain it.
 */

/** How long work that was ended early may take to answer and to write down how it ended, ms. */
const WRITE_DOWN_MS = 2_000;

type LifecycleState = 'open' | 'draining' | 'closed' | 'drained';

/** The steps of a drain, in this order. */
export interface DrainSteps {
  /** How long new calls are still served, milliseconds. */
  readonly propagationMs: number;
  /** Stops the listeners; called when the gate closes. */
  readonly stopListening: () => void;
  /** How long running calls may take after that, milliseconds. */
  readonly finishMs: number;
  /** Ends the exchanges of calls that still run, so that these are answered and written down. */
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
      // Before connections close: a call that has paid still gets an answer that says so.
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
    /** Drains once per opening; resolves when work ended or the waits are over. */
    drain: (steps: DrainSteps): Promise<void> => (drained ??= runDrain(steps)),
    /** Lets calls in again after a drain. */
    reopen(): void {
      state = 'open';
      drained = undefined;
    },
  };
}

/** How long a call is held, milliseconds: a container that restarts usually takes less. */
export const HELD_MS = 2_000;
/** Calls that are held at the same time; further ones are refused at once. */
export const MOST_HELD = 512;

/**
 * `raised`: new calls are held, and the backend stays for those that run. `released`: the backend
 * may end at any moment.
 */
type FenceState = 'down' | 'raised' | 'released';

export type Fence = ReturnType<typeof createFence>;

export function createFence() {
  let state: FenceState = 'down';
  const held = new Set<(passes: boolean) => void>();
  const count = { wentOn: 0, refused: 0 };

  const hold = (): Promise<boolean> =>
    new Promise((resolve) => {
      const end = (passes: boolean): void => {
        clearTimeout(timer);
        held.delete(end);
        count[passes ? 'wentOn' : 'refused'] += 1;
        resolve(passes);
      };
      const timer = setTimeout(() => end(false), HELD_MS);
      held.add(end);
    });
  return {
    state: () => state,
    /** Whether a call has to `pass`. */
    up: () => state !== 'down',
    /** Whether the backend stays for a call that pays now: part of the settlement gate. */
    backendStays: () => state !== 'released',
    /** Resolves to true when the fence is down, to false when the call was held for too long. */
    async pass(): Promise<boolean> {
      if (state === 'down') return true;
      if (held.size < MOST_HELD) return hold();
      count.refused += 1;
      return false;
    },
    raise(): void {
      if (state === 'down') state = 'raised';
    },
    release(): void {
      state = 'released';
    },
    /** Lets all calls go on. */
    lower(): void {
      state = 'down';
      for (const end of held) end(true);
    },
    /** Calls that are held now, and how those before them ended. */
    facts: () => ({ held: held.size, ...count }),
  };
}

/** The shortest time that running calls get, milliseconds. */
const SHORTEST_FINISH_MS = 30_000;
/** The time of a call beside its wait for the backend, milliseconds: most of it settlement. */
const SETTLEMENT_MS = 60_000;

/** The two parts of a drain. */
export interface DrainLength {
  /** How long new calls are still served, milliseconds: until no endpoint lists the pod. */
  readonly propagationMs: number;
  /** How long running calls may take after that, milliseconds. */
  readonly finishMs: number;
}

/** `longestTimeoutMs`: of all requests that the backend may get; 0 where it gets none. */
export function drainLength(propagationSeconds: number, longestTimeoutMs: number): DrainLength {
  const longestCallMs = longestTimeoutMs === 0 ? 0 : longestTimeoutMs + SETTLEMENT_MS;
  return { propagationMs: propagationSeconds * 1_000, finishMs: Math.max(SHORTEST_FINISH_MS, longestCallMs) };
}

/** The whole drain in full seconds, as the annotation of a pod states it. */
export function drainSeconds({ propagationMs, finishMs }: DrainLength): number {
  return Math.ceil((propagationMs + finishMs) / 1_000);
}

/** Why the pod leaves too little time for such a drain; undefined: it leaves enough. */
export function budgetProblem(length: DrainLength, budgetSeconds: number | undefined): string | undefined {
  const seconds = drainSeconds(length);
  if (budgetSeconds === undefined || seconds <= budgetSeconds) return undefined;
  return (
    `is ${budgetSeconds}, and the drain of this configuration may take ${seconds} s; set the annotation ` +
    `agent-commerce.dev/drain-seconds: "${seconds}" on the pod, or shorten the longest timeoutMs`
  );
}
