import { setTimeout as pause } from 'node:timers/promises';
import { type Connection, ConnectLate } from './backend-socket.ts';

/**
 * Exchanges in a row that a merchant who takes connections leaves without a byte of an answer,
 * until the breaker opens.
 */
export const SILENCES_TO_OPEN = 3;
/**
 * How long the breaker stays open at first, and at the longest, milliseconds; each trial that fails
 * doubles it.
 */
export const FIRST_PERIOD_MS = 250;
export const LONGEST_PERIOD_MS = 2_000;
/**
 * Shortest and longest part of a period that is waited, so that replicas do not try in step and
 * recovery is seen within the longest.
 */
const JITTER = { from: 0.75, to: 0.95 } as const;

/**
 * `closed`: the merchant is believed to answer. `open`: nothing is sold until a trial succeeds.
 * `probation`: he takes connections again, and nobody knows whether he answers: one sale at a time,
 * until the first answer or the next silence.
 */
export type BreakerState = 'closed' | 'probation' | 'open';

/**
 * `refused`: no connection could be opened. `silent`: connections open, and nothing is answered on
 * them.
 */
export type BackendTrouble = 'refused' | 'silent';

/**
 * What a trial heard; it rejects when it could not even connect, or when what must answer did not.
 */
export type Trial = () => Promise<'answered' | 'connected'>;

/** Told when nothing may be sold for want of the merchant, and when something may again. */
export type ReachListener = (
  reach:
    | { readonly reachable: true }
    | { readonly reachable: false; readonly trouble: BackendTrouble; readonly cause: unknown },
) => void;

/** What is told of exchanges with one merchant. */
export interface Health {
  /** A head of an answer came, whatever it says. */
  answered(): void;
  /** No connection could be opened. */
  unreachable(cause: unknown): void;
  /**
   * A request was written, and its connection broke or its deadline passed without a byte of an
   * answer.
   */
  silent(cause: unknown): void;
}

/**
 * The circuit breaker of one backend origin: it remembers refusals and silences, so that no money
 * is taken for calls that are known to fail. One refusal opens it, because a refused connection is
 * certain; a call that got no answer may have been unlucky, so it takes three in a row. Any answer
 * closes it, a 5xx too. While it is open a trial runs at the end of each period: never a call that
 * was paid.
 */
export class CircuitBreaker implements Health {
  readonly #trial: Trial;
  readonly #onChange: ReachListener;
  readonly #random: () => number;
  #state: BreakerState = 'closed';
  #trouble: BackendTrouble = 'refused';
  #silences = 0;
  #doublings = 0;
  #heardAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;
  readonly #opened = { refused: 0, silent: 0 };

  /** `random`: 0 to below 1. */
  constructor(trial: Trial, onChange: ReachListener, random: () => number = Math.random) {
    this.#trial = trial;
    this.#onChange = onChange;
    this.#random = random;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /** How often it opened, by what opened it. */
  get opened(): Readonly<Record<BackendTrouble, number>> {
    return this.#opened;
  }

  /** Milliseconds since an answer came. */
  get quietMs(): number {
    return performance.now() - this.#heardAt;
  }

  /**
   * Whether he takes connections and has not been heard since he was silent: a request would not
   * come back for all we know.
   */
  get mute(): boolean {
    return this.#state === 'open' && this.#trouble === 'silent';
  }

  answered(): void {
    this.#heardAt = performance.now();
    this.#silences = 0;
    this.#doublings = 0;
    if (this.#state !== 'closed') this.#become('closed');
  }

  unreachable(cause: unknown): void {
    // A connection that nobody accepts in time is a silence: the next one may be accepted.
    if (cause instanceof ConnectLate) {
      this.silent(cause);
      return;
    }
    // Whoever was silent is gone, and his successor begins anew.
    this.#silences = 0;
    this.#open('refused', cause);
  }

  silent(cause: unknown): void {
    this.#silences += 1;
    if (this.#silences >= SILENCES_TO_OPEN) this.#open('silent', cause);
  }

  /**
   * Tries the merchant now, or joins the trial that runs. Never rejects; `state` and `quietMs` say
   * what it found.
   */
  look(): Promise<void> {
    this.#running ??= this.#try().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** No more trials. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #try(): Promise<void> {
    try {
      const heard = await this.#trial();
      if (heard === 'answered') this.answered();
      // Behind a refusal an open connection is all that was missing.
      else if (this.#state === 'open') this.#become(this.#trouble === 'refused' ? 'closed' : 'probation');
    } catch (cause) {
      if (this.#stopped) return;
      const trouble = isSilence(cause) ? 'silent' : 'refused';
      this.#silences = trouble === 'silent' ? SILENCES_TO_OPEN : 0;
      if (this.#state === 'open') {
        this.#trouble = trouble;
        this.#wait();
      } else this.#open(trouble, cause);
    }
  }

  #open(trouble: BackendTrouble, cause: unknown): void {
    // What fails while it is open began before, or carries no new money: the trials decide.
    if (this.#state === 'open' || this.#stopped) return;
    this.#trouble = trouble;
    this.#opened[trouble] += 1;
    this.#become('open', cause);
    this.#wait();
  }

  #wait(): void {
    const period = Math.min(FIRST_PERIOD_MS * 2 ** this.#doublings, LONGEST_PERIOD_MS);
    this.#doublings += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => void this.look(),
      period * (JITTER.from + this.#random() * (JITTER.to - JITTER.from)),
    );
    this.#timer.unref();
  }

  #become(state: BreakerState, cause?: unknown): void {
    const wasOpen = this.#state === 'open';
    this.#state = state;
    if (state === 'open') this.#onChange({ reachable: false, trouble: this.#trouble, cause });
    else {
      clearTimeout(this.#timer);
      if (wasOpen) this.#onChange({ reachable: true });
    }
  }
}

/** Somebody accepts connections, or may, and does not answer. */
function isSilence(cause: unknown): boolean {
  return cause instanceof ConnectLate || cause instanceof Unanswered;
}

/** What was asked on an open connection and got no answer; for the log. */
export class Unanswered extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.name = 'Unanswered';
  }
}

/** Health of a merchant whose state nobody asks for. */
export const UNWATCHED: Health = { answered: () => {}, unreachable: () => {}, silent: () => {} };

/**
 * How long a connection that opened is watched, milliseconds: one that is closed right behind its
 * accept is no way.
 */
const WATCHED_MS = 20;
/** How long the merchant may take to answer a probe, milliseconds. */
const PROBE_TIMEOUT_MS = 1_000;

/** What may be asked of a merchant at any time. */
export interface Probe {
  /** Begins with `/`. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Tries whether the merchant is there: by a connection that opens, and, where he may be asked
 * something, by any answer to a GET. Nothing is kept of either, so that a trial never finds the
 * connection of the one before.
 */
export function createTrial(connection: Connection, host: string, probe: Probe | undefined): Trial {
  return async () => {
    try {
      await connection.opened();
      if (probe === undefined) {
        await pause(WATCHED_MS);
        if (!connection.live) throw new Unanswered('a new connection was closed at once');
        return 'connected';
      }
      await asked(connection, host, probe);
      return 'answered';
    } finally {
      connection.drop();
    }
  };
}

async function asked(connection: Connection, host: string, { path, headers }: Probe): Promise<void> {
  try {
    const { body } = await connection.request({
      method: 'GET',
      path,
      headers: { 'accept-encoding': 'identity', ...headers, host },
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    // Nobody reads it; its connection ends with the trial.
    body.on('error', () => {}).destroy();
  } catch (cause) {
    throw new Unanswered('no answer to the probe', cause);
  }
}
