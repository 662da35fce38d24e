/**
 * Load shedding. A call begins while a slot is free and the turn of the event loop has time for it;
 * further calls wait unread, a second at most. Three numbers decide:
 *
 * - `limits.maxInFlight`: slots, the calls that may be in flight.
 * - `TURN_MS`: the work of calls that begin in one turn of the event loop. It bounds the delay that
 *   calls cause by beginning together.
 * - A limit on calls in flight: a call goes on after its begin, in pieces that depend on others,
 *   and the answers to hundreds of payments may come in one turn. So long turns lower the limit,
 *   and it rises again while calls wait for it.
 */

import type { ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { Limiter, Places } from '../../limiter.ts';
import { LinkedList } from '../../linked-list.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import { onceClosed } from '../http/access-record.ts';

/**
 * The kind of a request, read from its head. `proof`: a call with a payment proof; `message`: its
 * body may carry one; `plain`: neither; `other`: no call, as documents, refusals and passed
 * requests. Kinds take turns, so that a flood of one leaves the others their share.
 */
const CALL_KINDS = ['proof', 'message', 'plain', 'other', 'probe'] as const;
export type CallKind = (typeof CALL_KINDS)[number];

/**
 * The rank of a call in its kind. `paid`: its connection bought something lately; `failed`: the
 * last proof of its connection, or the last proofs of its network, bought nothing.
 */
const RANKS = ['paid', 'usual', 'failed'] as const;
export type Standing = (typeof RANKS)[number];

/** Most calls of a kind that wait: the usual connections of a listener, some 3.4 KB each. */
export const MOST_WAITING = 4_096;
/** Most large calls among them: more than `SMALL_BYTES` of head and body, or no declared length. */
export const MOST_LARGE = 64;
export const SMALL_BYTES = 10_240;
/** How long a call waits, milliseconds: then its caller may as well ask again. */
export const MAX_WAIT_MS = 1_000;
/**
 * Work of calls that begin in one turn, milliseconds. A call in flight waits for several turns,
 * and a new connection waits as well, since the loop accepts one a turn.
 */
export const TURN_MS = 0.5;
/** The least part of `TURN_MS` for waiting calls in a turn, however long its other work takes. */
export const LEAST_MS = 0.25;
/** Most calls that wait and begin in one turn. */
const BEGINS = 32;
/**
 * Between two begins of calls whose last proof bought nothing, milliseconds: a forged proof costs
 * most after its begin, so no turn bounds it.
 */
export const FAILED_EVERY_MS = 10;

/** How often the turns are judged, milliseconds. */
export const JUDGE_MS = 25;
/** Turns that are longer on average lower the limit, milliseconds. */
export const LONG_TURN_MS = 10;
/** So many calls keep a core busy, and are not what delays the loop. */
export const LEAST_IN_FLIGHT = 32;
/** The share of the calls in flight that a long turn lowers the limit to. */
const FALL = 0.75;
/**
 * In one judgement the limit rises at least by this share of the calls that ended, or of itself;
 * while the loop is busy, only by `LEAST_RISE` of itself.
 */
const RISE = 0.05;
const LEAST_RISE = 0.01;
/** While the loop works for less of the time, its long turns are bursts that harm nothing. */
export const BUSY = 0.75;
/** The weight of one judgement in the share of busy time, which so covers about half a second. */
const BUSY_WEIGHT = 0.05;

/** The parts of the runtime that the limit needs; a simulation brings its own. */
export interface Runtime extends Time {
  /** Counts this thread's milliseconds on a core; a wait for a core is no work. */
  worked(): number;
  /** Calls back at the end of the turn, in the order of the calls. */
  atEnd(callback: () => void): unknown;
}

const THIS_THREAD: Runtime = {
  ...REAL_TIME,
  worked() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
  atEnd: setImmediate,
};

/** A request that was not admitted. */
export interface WaitingCall {
  readonly kind: CallKind;
  readonly standing: Standing;
  /** The network of its client. */
  readonly client: string;
  readonly large: boolean;
  /** Whether its caller has left. */
  gone(): boolean;
  begin(): void;
  /** Answers that there was no room for it. */
  refuse(): void;
}

/** Whether calls of a kind need a slot; others begin while all slots are taken. */
function takesSlot(kind: string): boolean {
  return kind !== 'other' && kind !== 'probe';
}

interface CallLimitParts {
  /** Called for each call, because a reload may change it. */
  readonly maxInFlight: number | (() => number);
  /** Counts waiting calls as work that must end before the process; the result notes its end. */
  readonly work: () => () => void;
  /** That of this thread unless given. */
  readonly runtime?: Runtime;
}

/** Decides when a call begins. */
export class CallLimit {
  readonly slots: Slots;
  readonly #runtime: Runtime;
  readonly #work: () => () => void;
  readonly #line: Limiter;
  readonly #large = new Map(CALL_KINDS.map((kind) => [kind, new Places(MOST_LARGE, 'share')]));
  #endWork: (() => void) | undefined;
  /** When the last call of the standing `failed` began. */
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Begins that are due at the end of the turn; whether one is under way, and had a call. */
  #due = 0;
  #isBeginning = false;
  #begun = false;

  /** Whether a turn is measured, and whether a request came in it. */
  #isMeasured = false;
  #came = false;
  /** When it began, by the clock and by the work of the thread. */
  #beganAt = 0;
  #began = 0;
  /** Its work for calls that had waited, and its time for them. */
  #servedMs = 0;
  #roomMs = TURN_MS;
  /** Work and number of the turns since the last judgement. */
  #turnsMs = 0;
  #turns = 0;

  /** Calls that may be in flight. */
  #limit = Number.POSITIVE_INFINITY;
  /** Since the last judgement: whether a call met the limit, most in flight, how many ended. */
  #reached = false;
  #most = 0;
  #ended = 0;
  /** The share of the time that the loop worked lately. */
  #busy = 0;

  constructor({ maxInFlight, work, runtime = THIS_THREAD }: CallLimitParts) {
    this.#runtime = runtime;
    this.#work = work;
    this.slots = new Slots(maxInFlight, () => {
      this.#ended += 1;
      this.#beginSoon();
    });
    this.#line = new Limiter({
      most: Number.POSITIVE_INFINITY,
      isOpen: (kind, rank) =>
        this.#isBeginning && (rank !== 'failed' || this.#mayFail()) && (!takesSlot(kind) || this.#hasSlot()),
      ...{ waiting: MOST_WAITING, waitMs: MAX_WAIT_MS, time: runtime },
      ...{ kinds: CALL_KINDS, ranks: RANKS },
    });
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#line.waiting;
  }

  /** Calls that may be in flight because of the event loop. */
  get calls(): number {
    return this.#limit;
  }

  /** Notes that a request came in, and tells whether it begins now. */
  admits(kind: CallKind): boolean {
    this.came();
    return (!takesSlot(kind) || this.#hasSlot()) && this.#ready() === 0 && this.#spentMs() < TURN_MS;
  }

  /** Lets a call wait that was not admitted. False: it must be refused now. */
  wait(call: WaitingCall): boolean {
    const { client, kind, standing } = call;
    const large = call.large ? this.#large.get(kind) : undefined;
    const holders = [client];
    if (large?.take(holders) === false) return false;
    const ended = (end: () => void) => (): void => {
      large?.giveBack(holders);
      if (!call.gone()) end();
      // The work ends after the last call has begun: a draining process could end between the two.
      if (this.#line.waiting > 0) return;
      this.#endWork?.();
      this.#endWork = undefined;
    };
    const waits = this.#line.line({
      // A call takes no place of this limiter: it takes a slot when it begins.
      ...{ client, holders: [], kind, rank: standing, size: 0 },
      start: ended(() => {
        if (standing === 'failed') this.#failedAt = this.#runtime.now();
        this.#begun = true;
        call.begin();
      }),
      refuse: ended(() => call.refuse()),
    });
    if (!waits) {
      large?.giveBack(holders);
      return false;
    }
    this.#endWork ??= this.#work();
    this.#beginSoon();
    return true;
  }

  /** Refuses all that waits. */
  close(): void {
    this.#line.close();
  }

  /** Measures this turn: a request came in, or one that waits may begin. */
  came(): void {
    if (!this.#isMeasured) this.#measure(this.#runtime.worked());
    this.#isMeasured = true;
    this.#came = true;
  }

  /**
   * Sets the limit, every `JUDGE_MS`. `busy`: the share of the time that the loop worked since the
   * last time.
   */
  judge(busy: number): void {
    this.#busy += BUSY_WEIGHT * (busy - this.#busy);
    const turnMs = this.#turns === 0 ? 0 : this.#turnsMs / this.#turns;
    const isBusy = this.#busy > BUSY;
    if (turnMs > LONG_TURN_MS && isBusy) {
      const most = Math.max(this.#most, this.slots.inFlight());
      this.#limit = Math.min(this.#limit, Math.max(LEAST_IN_FLIGHT, FALL * most));
    } else if (this.#reached) {
      // The end of a call shows its cost, so the limit rises with the calls that ended, as far as
      // the loop lacks work; without such calls it rises slowly.
      const lacks = Math.min(1, Math.max(RISE, 1 / this.#busy - 1));
      this.#limit += Math.max(lacks * this.#ended, (isBusy ? LEAST_RISE : RISE) * this.#limit);
    }
    this.#beginSoon();
    this.#turnsMs = 0;
    this.#turns = 0;
    this.#ended = 0;
    this.#most = this.slots.inFlight();
    this.#reached = false;
  }

  #hasSlot(): boolean {
    const inFlight = this.slots.inFlight();
    if (inFlight > this.#most) this.#most = inFlight;
    if (inFlight >= this.#limit) this.#reached = true;
    else if (this.slots.free()) return true;
    return false;
  }

  /** Work of this turn, milliseconds. The clock is cheaper to read, and never behind the work. */
  #spentMs(): number {
    const ms = this.#runtime.now() - this.#beganAt;
    return ms < TURN_MS ? ms : this.#runtime.worked() - this.#began;
  }

  #measure(worked: number): void {
    this.#came = false;
    this.#began = worked;
    this.#beganAt = this.#runtime.now();
    this.#runtime.atEnd(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    const worked = this.#runtime.worked();
    const ms = worked - this.#began;
    this.#turnsMs += ms;
    this.#turns += 1;
    this.#roomMs = Math.max(LEAST_MS, TURN_MS - (ms - this.#servedMs));
    this.#servedMs = 0;
    // The next turn's measure begins here: early work delays its calls too.
    this.#isMeasured = this.#came;
    if (this.#came) this.#measure(worked);
  };

  /** Waiting calls that may begin: those that need a slot only if there is one. */
  #ready(): number {
    const slotless = this.#line.waiting === 0 ? 0 : this.#line.waitingOf('other') + this.#line.waitingOf('probe');
    return slotless < this.#line.waiting && this.#hasSlot() ? this.#line.waiting : slotless;
  }

  /** Begins calls at the end of this turn. */
  #beginSoon(): void {
    if (this.#due > 0) return;
    this.#due = Math.min(BEGINS, this.#ready());
    if (this.#due === 0) return;
    // `came` marks the end of the turn before the begins: they get the time that the turn left.
    this.came();
    for (let begin = 0; begin < this.#due; begin += 1) this.#runtime.atEnd(this.#begin);
  }

  /**
   * Begins one call. Between two callbacks Node runs the microtasks of the first one, so each call
   * has its slot before the next one begins.
   */
  readonly #begin = (): void => {
    this.#due -= 1;
    // Without time left, the other begins of this turn do not read the clock.
    if (this.#roomMs > 0 && this.#spentMs() < this.#roomMs) this.#beginNext();
    else this.#roomMs = 0;
    if (this.#due === 0) this.#beginSoon();
  };

  #mayFail(): boolean {
    return this.#runtime.now() - this.#failedAt >= FAILED_EVERY_MS;
  }

  #beginNext(): void {
    this.#isBeginning = true;
    // A call whose caller has left does not begin.
    for (this.#begun = false; !this.#begun && this.#line.startNext(); );
    this.#isBeginning = false;
    if (this.#begun) this.#servedMs = this.#spentMs();
  }
}

/** Adds a hold on a slot; the result lets go of it, and the last one to do so frees the slot. */
export type Hold = () => () => void;

/** The slots of a process or of an adapter: how many calls may be in flight. */
export class Slots {
  readonly #most: () => number;
  readonly #onFreed: (() => void) | undefined;
  /** In the order of their beginnings, on the clock of `performance.now()`. */
  readonly #taken = new LinkedList<{ readonly since: number; readonly isAnswering: () => boolean }>();

  /** `most`: a function is asked for each call, because a reload may change it. */
  constructor(most: number | (() => number), onFreed?: () => void) {
    this.#most = typeof most === 'number' ? () => most : most;
    this.#onFreed = onFreed;
  }

  /** Whether one more call may be admitted. */
  free(): boolean {
    return this.#taken.size < this.#most();
  }

  inFlight(): number {
    return this.#taken.size;
  }

  /**
   * Takes a slot, free or not, until all holds on it end; the first hold must be added at once.
   * `isAnswering`: whether bytes of the answer still go out, which may take long.
   */
  take(isAnswering = () => false): Hold {
    const slot = this.#taken.add({ since: performance.now(), isAnswering });
    let holds = 0;
    return () => {
      holds += 1;
      return () => {
        holds -= 1;
        if (holds === 0 && this.#taken.remove(slot)) this.#onFreed?.();
      };
    };
  }

  /** Takes a slot for the call that this response answers, at least until that is closed. */
  takeFor(res: ServerResponse): Hold {
    const hold = this.take(() => res.headersSent && !res.closed && !res.req.socket.destroyed);
    onceClosed(res, hold());
    return hold;
  }

  /**
   * Frees the slots of calls that began before `beganBefore` and send no answer. @returns how many
   */
  freeLost(beganBefore: number): number {
    const before = this.#taken.size;
    for (const slot of this.#taken) {
      const { since, isAnswering } = slot.member;
      if (since >= beganBefore) break;
      if (!isAnswering() && this.#taken.remove(slot)) this.#onFreed?.();
    }
    return before - this.#taken.size;
  }
}

/** How long an answer of a free call waits for memory before its call is refused, milliseconds. */
export const FREE_WAIT_MS = 2_000;
/**
 * How long an answer of a paid call waits for memory: a third of the time that a reader may hold a
 * backend back, milliseconds.
 */
export const PAID_WAIT_MS = 20_000;

/** Its places are bytes. */
export type AnswerBudget = Limiter;

/**
 * Each answer takes all its memory once, before its bytes are read, and no more while it holds
 * some, so no two can wait for each other. `atMost`: bytes at the same time.
 */
export function createAnswerBudget(atMost: number | (() => number), time?: Time): AnswerBudget {
  const waitMs = (rank: string): number => (rank === 'paid' ? PAID_WAIT_MS : FREE_WAIT_MS);
  return new Limiter({ most: atMost, ranks: ['paid', 'free'], waitMs, time });
}
