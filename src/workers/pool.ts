/**
 * Keeps the workers of one gateway: starts them, asks them together, and puts another one in the
 * place of each that ends. The primary serves no agents itself.
 */

import { type Asker, type ChannelEnd, createAsker, WorkerGone } from './channel.ts';
import type { Answered, CommandName, Given, StartOrder } from './commands.ts';

/** Workers that may end in `DEATHS_WITHIN_MS`: a fault that ends more of them stays. */
export const MOST_DEATHS = 5;
export const DEATHS_WITHIN_MS = 60_000;
/** Between two looks at whether a worker's event loop turns, milliseconds. */
export const LOOK_EVERY_MS = 10_000;
/** Looks in a row that a worker may leave without an answer before it is ended: half a minute. */
export const MOST_UNANSWERED = 3;
/** How long a worker may take to end once it was asked to, milliseconds. */
const ENDS_WITHIN_MS = 10_000;
/** How long one that serves may take to answer, milliseconds: what has asked waits no longer. */
export const ANSWERS_WITHIN_MS = 1_000;
/** How much longer a replacement waits with each death within the minute, milliseconds. */
export const PAUSE_MS = 1_000;

/** How a process ended. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A worker's process, as the system has it. */
export interface WorkerProcess extends ChannelEnd {
  readonly pid: number;
  onEnd(listener: (end: WorkerEnd) => void): void;
  /** SIGKILL. */
  kill(): void;
}

/** Something worth a log line. */
export type PoolNote =
  | { readonly kind: 'ended'; readonly pid: number; readonly end: WorkerEnd }
  | { readonly kind: 'replaced'; readonly pid: number }
  | { readonly kind: 'not replaced'; readonly pid: number; readonly error: unknown }
  | { readonly kind: 'silent'; readonly pid: number };

interface PoolParts {
  readonly count: number;
  readonly fork: () => WorkerProcess;
  /** What a worker begins with now. */
  readonly order: () => StartOrder;
  readonly note: (note: PoolNote) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** The workers of a gateway. */
export interface Pool {
  /** Starts all of them; resolves with the port that they share. @throws when one cannot start */
  start(): Promise<number>;
  /**
   * Asks all workers, also those that are starting, which answer once they have. One that ends
   * meanwhile or cannot start is left out of the answers.
   * @throws Error of the first one that failed
   */
  all<Name extends CommandName>(name: Name, given: Given<Name>): Promise<readonly Answered<Name>[]>;
  /**
   * Asks those that serve. Each answer has the worker's number; numbers are never used again.
   * Undefined: it is there and does not answer in time.
   */
  serving<Name extends CommandName>(
    name: Name,
    given: Given<Name>,
  ): Promise<ReadonlyMap<number, Answered<Name> | undefined>>;
  /** No worker is replaced from now on, until `refill`: the pod drains. */
  hold(): void;
  /** Starts what is missing. */
  refill(): void;
  facts(): { readonly serving: number; readonly ended: number };
  /** Rejects when too many workers ended. */
  readonly failed: Promise<never>;
  /** Asks all to end in order; resolves when they are gone. */
  end(): Promise<void>;
  /** Ends them at once. */
  kill(): void;
}

interface Worker {
  readonly number: number;
  readonly process: WorkerProcess;
  readonly asker: Asker;
  serving: boolean;
  /** Looks since its last answer. */
  unanswered: number;
  readonly gone: Promise<WorkerEnd>;
}

export function createPool(parts: PoolParts): Pool {
  const { count, fork, order, note, now = () => performance.now() } = parts;
  const workers = new Set<Worker>();
  const failed = Promise.withResolvers<never>();
  // Without a listener yet, a rejection would end the process.
  failed.promise.catch(() => undefined);
  let numbers = 0;
  let state: 'starting' | 'open' | 'held' | 'ending' = 'starting';
  let deaths: readonly number[] = [];
  let ended = 0;
  let watch: NodeJS.Timeout | undefined;

  const begin = (): { readonly worker: Worker; readonly started: Promise<{ readonly port: number }> } => {
    const process = fork();
    const asker = createAsker(process);
    const gone = Promise.withResolvers<WorkerEnd>();
    numbers += 1;
    const worker: Worker = { number: numbers, process, asker, serving: false, unanswered: 0, gone: gone.promise };
    workers.add(worker);
    process.onEnd((end) => {
      workers.delete(worker);
      asker.gone();
      gone.resolve(end);
      if (state === 'open' || state === 'held') onDeath(worker, end);
    });
    const started = asker.ask('start', order()).then((listening) => {
      worker.serving = true;
      return listening;
    });
    return { worker, started };
  };
  const onDeath = ({ process }: Worker, end: WorkerEnd): void => {
    ended += 1;
    note({ kind: 'ended', pid: process.pid, end });
    const at = now();
    deaths = [...deaths.filter((earlier) => at - earlier < DEATHS_WITHIN_MS), at];
    if (deaths.length > MOST_DEATHS) {
      state = 'ending';
      failed.reject(
        new Error(`${deaths.length} workers ended within ${DEATHS_WITHIN_MS / 1_000} s: the lines before say how`),
      );
    } else if (state === 'open') replaceAfter((deaths.length - 1) * PAUSE_MS);
  };
  // A cause that passes within seconds would else use up all deaths of the minute.
  const replaceAfter = (ms: number): void => {
    if (ms === 0) replace();
    else
      setTimeout(() => {
        // Meanwhile the pod may drain, or `refill` may have started what was missing.
        if (state === 'open' && workers.size < count) replace();
      }, ms).unref();
  };
  const replace = (): void => {
    const { worker, started } = begin();
    const { pid } = worker.process;
    started.then(
      () => note({ kind: 'replaced', pid }),
      (error: unknown) => {
        if (error instanceof WorkerGone) return;
        note({ kind: 'not replaced', pid, error });
        worker.process.kill();
      },
    );
  };
  const refill = (): void => {
    if (state !== 'held') return;
    state = 'open';
    for (let missing = count - workers.size; missing > 0; missing -= 1) replace();
  };
  // Looks are counted and not their time: after a standstill of the primary the answers are there,
  // but not read yet.
  const look = (worker: Worker): void => {
    if (worker.unanswered >= MOST_UNANSWERED) {
      note({ kind: 'silent', pid: worker.process.pid });
      worker.process.kill();
      return;
    }
    worker.unanswered += 1;
    worker.asker.ask('ping', null).then(
      () => {
        worker.unanswered = 0;
      },
      () => undefined,
    );
  };
  const gather = async <Found>(asked: readonly Worker[], ask: (asker: Asker) => Promise<Found>) => {
    const answers = await Promise.allSettled(
      asked.map(async ({ number, asker }) => [number, await ask(asker)] as const),
    );
    const found = new Map<number, Found>();
    for (const [index, answer] of answers.entries())
      if (answer.status === 'fulfilled') found.set(...answer.value);
      // One that could not start answers everything with the reason, and is ended.
      else if (asked[index]?.serving === true && !(answer.reason instanceof WorkerGone)) throw answer.reason;
    return found;
  };
  return {
    async start() {
      const begun = Array.from({ length: count }, begin);
      const [first] = await Promise.all(
        begun.map(({ worker, started }) => started.catch((error) => diedOf(worker, error))),
      );
      state = 'open';
      watch = setInterval(() => {
        for (const worker of workers) if (worker.serving) look(worker);
      }, LOOK_EVERY_MS).unref();
      return first?.port ?? 0;
    },
    all: async (name, given) => [...(await gather([...workers], (asker) => asker.ask(name, given))).values()],
    async serving(name, given) {
      const overdue = Promise.withResolvers<undefined>();
      // After a standstill of the primary the answers are there, and are read before the turn ends.
      const timer = setTimeout(() => setImmediate(overdue.resolve, undefined), ANSWERS_WITHIN_MS);
      const asked = [...workers].filter(({ serving }) => serving);
      try {
        return await gather(asked, (asker) => Promise.race([asker.ask(name, given), overdue.promise]));
      } finally {
        clearTimeout(timer);
      }
    },
    hold() {
      if (state === 'open') state = 'held';
    },
    refill,
    facts: () => ({ serving: [...workers].filter(({ serving }) => serving).length, ended }),
    failed: failed.promise,
    async end() {
      state = 'ending';
      clearInterval(watch);
      const left = [...workers];
      const late = setTimeout(() => {
        for (const { process } of left) process.kill();
      }, ENDS_WITHIN_MS);
      for (const { asker } of left) asker.ask('end', null).catch(() => undefined);
      await Promise.all(left.map(({ gone }) => gone));
      clearTimeout(late);
    },
    kill() {
      state = 'ending';
      for (const { process } of workers) process.kill();
    },
  };
}

/** What a worker said before it ended is the cause; else how it ended is. */
async function diedOf({ gone }: Worker, error: unknown): Promise<never> {
  if (!(error instanceof WorkerGone)) throw error;
  const { code, signal } = await gone;
  throw new Error(`a worker ended while it started (${signal ?? `exit code ${code}`}): its log says why`);
}
