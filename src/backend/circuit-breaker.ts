/** The circuit breaker of a backend and the trials that close it; exchanges report to it. */

import { setTimeout as pause } from 'node:timers/promises';
import type { Sale } from './backend-exchange.ts';
import { type Connection, ConnectLate } from './connection-pool.ts';

/** So many connections in a row that are not accepted, or closed at once, open the breaker. */
export const SILENCES_TO_OPEN = 3;
/** How long the breaker stays open, milliseconds; failed trials double it up to the longest. */
export const FIRST_PERIOD_MS = 250;
export const LONGEST_PERIOD_MS = 2_000;
/** The part of a period that is waited is random, so that replicas do not try at the same time. */
const JITTER = { from: 0.75, to: 0.95 } as const;

/** How long a trial watches a new connection, milliseconds: it may be closed behind its accept. */
const WATCHED_MS = 20;
/** How long the backend may take to answer a probe, milliseconds. */
const PROBE_TIMEOUT_MS = 1_000;

/**
 * `closed`: the backend is believed to answer. `open`: nothing is sold until a trial succeeds.
 * `probation`: it takes connections again, and whether it answers is not known: one paid call at a
 * time, until the first answer or the next silence.
 */
export type BreakerState = 'closed' | 'probation' | 'open';

/** `refused`: no connection could be opened. `silent`: connections open, but bring no answer. */
export type BackendTrouble = 'refused' | 'silent';

/** Resolves to its finding; rejects when it could not connect, or when a probe was not answered. */
export type Trial = () => Promise<'answered' | 'connected'>;

/** Called when paid calls must be refused because the backend is away, and when it is back. */
export type ReachListener = (
  reach:
    | { readonly reachable: true }
    | { readonly reachable: false; readonly trouble: BackendTrouble; readonly cause: unknown },
) => void;

/** Takes reports of the exchanges with one backend. */
export interface Health {
  /** The backend takes connections and does not answer: requests that can wait should wait. */
  readonly unresponsive: boolean;
  /** A head of an answer came, with any status. `sale`: for this payment. */
  answered(sale?: Sale): void;
  /** No connection could be opened. */
  unreachable(cause: unknown): void;
  /** A connection was not accepted in time, or closed at once. */
  silent(cause: unknown): void;
  /**
   * The request of a call whose money has moved was written at `writtenAt`, and its connection or
   * its time ended without a byte of an answer.
   */
  unanswered(cause: unknown, sale: Sale, writtenAt: number): void;
}

/**
 * The circuit breaker of one backend origin: it counts refusals and silences, so that no money is
 * taken for calls that are known to fail. One refusal opens it, because a refused connection is
 * certain; calls without an answer open it as `Silences` says, and only those whose money has
 * moved, because any caller can make others. Any answer closes it, a 5xx too. While it is open a
 * trial runs at the end of each period, never a paid call.
 */
export class CircuitBreaker implements Health {
  readonly #trial: Trial;
  readonly #onChange: ReachListener;
  readonly #random: () => number;
  #state: BreakerState = 'closed';
  #trouble: BackendTrouble = 'refused';
  #silences = 0;
  readonly #unanswered = new Silences();
  #doublings = 0;
  #answeredAt = Number.NEGATIVE_INFINITY;
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
  get sinceAnswerMs(): number {
    return performance.now() - this.#answeredAt;
  }

  /** Whether it opened for silence and no answer came since: a request would probably get none. */
  get unresponsive(): boolean {
    return this.#state === 'open' && this.#trouble === 'silent';
  }

  answered(sale?: Sale): void {
    this.#answeredAt = performance.now();
    if (sale !== undefined) this.#unanswered.answered(sale, this.#answeredAt);
    this.#silences = 0;
    this.#doublings = 0;
    if (this.#state !== 'closed') this.#change('closed');
  }

  unreachable(cause: unknown): void {
    // A connection that is not accepted in time is a silence: the next one may be accepted.
    if (cause instanceof ConnectLate) {
      this.silent(cause);
      return;
    }
    // The silent process is gone, and the count begins anew for the one that follows.
    this.#silences = 0;
    this.#open('refused', cause);
  }

  silent(cause: unknown): void {
    this.#silences += 1;
    if (this.#silences >= SILENCES_TO_OPEN) this.#open('silent', cause);
  }

  unanswered(cause: unknown, sale: Sale, writtenAt: number): void {
    this.#unanswered.add(sale, writtenAt, performance.now());
    if (this.#state === 'probation' || this.#unanswered.ofBackend(this.#answeredAt)) this.#open('silent', cause);
  }

  /**
   * Whether money may be taken for a sale. On probation one paid call runs at a time. `running`:
   * paid calls under way, of its resource and in all.
   */
  allows(sale: Sale, running: { readonly resource: number; readonly all: number }): boolean {
    if (this.#state === 'open') return false;
    // Probation does not limit this call: no money is at risk, and its answer ends probation too.
    if (sale.settle === 'after') return true;
    const onTrust = this.#state === 'probation';
    return !(onTrust && running.all > 0) && this.#unanswered.allows(sale, running.resource, onTrust);
  }

  /**
   * Runs a trial now, or joins the one that runs. Never rejects; `state` and `sinceAnswerMs` show
   * its finding.
   */
  tryNow(): Promise<void> {
    this.#running ??= this.#try().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Ends the trials. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #try(): Promise<void> {
    try {
      const found = await this.#trial();
      if (found === 'answered') this.answered();
      // After a refusal an open connection is all that was missing.
      else if (this.#state === 'open') this.#change(this.#trouble === 'refused' ? 'closed' : 'probation');
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
    // A call that fails while it is open began before, or moves no new money: the trials decide.
    if (this.#state === 'open' || this.#stopped) return;
    this.#trouble = trouble;
    this.#opened[trouble] += 1;
    this.#change('open', cause);
    this.#wait();
  }

  #wait(): void {
    const period = Math.min(FIRST_PERIOD_MS * 2 ** this.#doublings, LONGEST_PERIOD_MS);
    this.#doublings += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => void this.tryNow(),
      period * (JITTER.from + this.#random() * (JITTER.to - JITTER.from)),
    );
    this.#timer.unref();
  }

  #change(state: BreakerState, cause?: unknown): void {
    const wasOpen = this.#state === 'open';
    this.#state = state;
    if (state === 'open') this.#onChange({ reachable: false, trouble: this.#trouble, cause });
    else {
      clearTimeout(this.#timer);
      if (wasOpen) this.#onChange({ reachable: true });
    }
  }
}

/** So many payers without an answer put their resource, or the backend, in doubt. */
const SILENT_PAYERS = 3;
/** So many unanswered payments of one payer stop its own next ones for a while. */
const SILENT_PAYMENTS = 3;
/** How long a payer without an answer waits so that others try first, milliseconds. */
const OTHERS_FIRST_MS = 5_000;
/** Most payers without an answer that a resource remembers. */
const MOST_PAYERS = 64;

interface SilentPayer {
  readonly payments: Set<string>;
  /** When its last request was written, and when that was given up; milliseconds. */
  writtenAt: number;
  endedAt: number;
}

interface SoldResource {
  /** When a paid call of it was answered, milliseconds. */
  answeredAt: number;
  /** Payers without an answer since then. */
  readonly payers: Map<string, SilentPayer>;
}

/**
 * Counts silences by payer, because one payer whose input hangs makes any number of them; then by
 * resource, because such an input belongs to one resource; and only then against the backend. A
 * silence does not count if another call was answered meanwhile: its own input may be the cause.
 */
class Silences {
  readonly #resources = new Map<string, SoldResource>();

  /** The head of an answer came for a paid call. */
  answered({ resourceId }: Sale, now: number): void {
    const resource = this.#of(resourceId);
    resource.answeredAt = now;
    if (resource.payers.size > 0) resource.payers.clear();
  }

  /** A payment counts once, however often its delivery is tried. */
  add({ payId, payer, resourceId }: Sale, writtenAt: number, now: number): void {
    const { answeredAt, payers } = this.#of(resourceId);
    const name = payer.toLowerCase();
    const silent = payers.get(name) ?? { payments: new Set(), writtenAt, endedAt: now };
    if (writtenAt < answeredAt || silent.payments.has(payId)) return;
    if (silent.payments.size < SILENT_PAYMENTS) silent.payments.add(payId);
    silent.writtenAt = writtenAt;
    silent.endedAt = now;
    payers.set(name, silent);
    const [oldest] = payers.keys();
    if (payers.size > MOST_PAYERS && oldest !== undefined) payers.delete(oldest);
  }

  /** Whether payers of several resources got no answer since the backend's last one. */
  ofBackend(answeredAt: number): boolean {
    const silent = [...this.#resources.values()].map(({ payers }) =>
      [...payers].filter(([, { writtenAt }]) => writtenAt >= answeredAt).map(([payer]) => payer),
    );
    const payers = new Set(silent.flat());
    return payers.size >= SILENT_PAYERS && silent.filter(({ length }) => length > 0).length > 1;
  }

  /**
   * Whether money may be taken for a sale. `running`: paid calls of its resource under way.
   * `onTrust`: nothing is known of the backend, so the payers that got an answer go first.
   */
  allows({ payer, resourceId }: Sale, running: number, onTrust: boolean): boolean {
    const payers = this.#resources.get(resourceId)?.payers;
    if (payers === undefined || payers.size === 0) return true;
    const inDoubt = payers.size >= SILENT_PAYERS;
    if (inDoubt && running > 0) return false;
    const silent = payers.get(payer.toLowerCase());
    if (silent === undefined || !(inDoubt || onTrust || silent.payments.size >= SILENT_PAYMENTS)) return true;
    return performance.now() - silent.endedAt >= OTHERS_FIRST_MS;
  }

  #of(resourceId: string): SoldResource {
    const found = this.#resources.get(resourceId);
    if (found !== undefined) return found;
    const made = { answeredAt: Number.NEGATIVE_INFINITY, payers: new Map() };
    this.#resources.set(resourceId, made);
    return made;
  }
}

/** Whether a failure shows a backend that accepts connections, or may, and does not answer. */
function isSilence(cause: unknown): boolean {
  return cause instanceof ConnectLate || cause instanceof Unanswered;
}

/** An open connection brought no answer. The message is for the log. */
export class Unanswered extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.name = 'Unanswered';
  }
}

/** For a backend whose state is not watched. */
export const UNWATCHED: Health = {
  unresponsive: false,
  answered: () => {},
  unreachable: () => {},
  silent: () => {},
  unanswered: () => {},
};

type HeaderFields = Readonly<Record<string, string>>;

/** A GET that may be sent to the backend at any time. */
export interface Probe {
  /** Begins with `/`. */
  readonly path: string;
  /** Lower-case names; a function is called for each probe. */
  readonly headers: HeaderFields | (() => HeaderFields);
}

/**
 * Makes the trial of a backend: its connection must open, and its probe, if it has one, must get
 * any answer. Each trial drops its connection, so that the next one opens a new one.
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
      await sendProbe(connection, host, probe);
      return 'answered';
    } finally {
      connection.drop();
    }
  };
}

async function sendProbe(connection: Connection, host: string, { path, headers }: Probe): Promise<void> {
  try {
    const { body } = await connection.request({
      method: 'GET',
      path,
      headers: { 'accept-encoding': 'identity', ...(typeof headers === 'function' ? headers() : headers), host },
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    // The body is not read; its connection ends with the trial.
    body.on('error', () => {}).destroy();
  } catch (cause) {
    throw new Unanswered('no answer to the probe', cause);
  }
}
