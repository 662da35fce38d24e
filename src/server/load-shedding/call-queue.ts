/** Lets requests begin while the process has room for them; others wait for their turn. */

import { performance } from 'node:perf_hooks';
import type { Turns } from './event-loop-lag.ts';
import { type Lined, WaitingLines } from './waiting-lines.ts';

/**
 * What is known of a request by its head. The kinds queue apart and begin by turns, so that a flood
 * of one leaves the others their share.
 */
export const CALL_KINDS = ['proof', 'message', 'plain', 'other', 'probe'] as const;
/**
 * `proof`: a call with a payment proof; `message`: its body may carry one; `plain`: neither.
 * `other`: what is no call, as documents, operators, refusals, and what passes.
 */
export type CallKind = (typeof CALL_KINDS)[number];

/**
 * Calls of one kind that wait at most: as many as a listener has connections. One takes 3.4 KB and
 * its own bytes. `large`: large calls of them.
 */
export const MOST_WAITING = { calls: 4_096, large: 64 };
/** Most memory of a call that is not large, bytes. */
export const SMALL_BYTES = 10_240;
/** How long a call waits at most, milliseconds: then its caller may as well ask again. */
export const MAX_WAIT_MS = 1_000;
/** Most calls that begin at the end of one turn. */
const LOOKS = 64;
/**
 * Between two begins of calls whose last proof bought nothing, milliseconds: what a forged proof
 * costs comes after its begin, so no turn bounds it.
 */
const FAILED_EVERY_MS = 10;
/** Most calls that are refused at a time because they waited too long: thousands are 100 ms. */
const REFUSALS = 64;

/** A request that was not admitted. */
export interface WaitingCall extends Lined {
  readonly kind: CallKind;
  /** Whether its caller has left. */
  gone(): boolean;
  begin(): void;
  /** Answers that there was no room for it. */
  refuse(): void;
}

/** Kinds that take no slot of the calls in flight: they begin while all slots are taken. */
const SLOTLESS: ReadonlySet<CallKind> = new Set(['other', 'probe']);

/** The waiting calls of one kind. */
interface Waiting {
  readonly takesSlot: boolean;
  readonly lines: WaitingLines<WaitingCall>;
}

interface CallQueueParts {
  readonly turns: Pick<Turns, 'came' | 'hasRoom' | 'hasRoomForWaiting'>;
  /** Whether one more call may be in flight. */
  readonly allowed: () => boolean;
  /** Counts what waits as work that must end before the process does; the result notes its end. */
  readonly work: () => () => void;
  /** This process's own unless given. */
  readonly now?: () => number;
  readonly atEnd?: (callback: () => void) => unknown;
}

/**
 * Lets requests begin while the turn of the event loop has room for them and no more calls are in
 * flight than may be. Others wait in a line for each client network; the lines are served in turn.
 * A call that has waited too long is refused. So a burst is served as fast as the process works. A
 * client whose call is refused may ask again at once, and a few hundred of them would take the
 * whole core with refusals; one whose call waits costs nothing.
 *
 * A call that carries a proof waits like any other: it may be worthless, and to look at it is the
 * work that it waits for. It never waits behind calls without one, and never while the process has
 * room for it.
 */
export class CallQueue {
  readonly #parts: Required<CallQueueParts>;
  readonly #kinds: readonly Waiting[];
  #waiting = 0;
  /** Looks that are due at the end of the turn. */
  #looks = 0;
  /** Whether more of what waited too long is refused at the end of the turn. */
  #refusing = false;
  /** When a call began whose last proof bought nothing. */
  #failedAt = Number.NEGATIVE_INFINITY;
  /** The kind that had its turn. */
  #last = 0;
  #endWork: (() => void) | undefined;

  constructor(parts: CallQueueParts) {
    this.#parts = { now: () => performance.now(), atEnd: setImmediate, ...parts };
    this.#kinds = CALL_KINDS.map((kind) => ({ takesSlot: !SLOTLESS.has(kind), lines: new WaitingLines(MOST_WAITING) }));
  }

  /** Calls that wait. */
  waiting(): number {
    return this.#waiting;
  }

  /** Notes that a request came in, and tells whether it begins now. */
  admits(kind: CallKind): boolean {
    this.#parts.turns.came();
    if (!SLOTLESS.has(kind) && !this.#parts.allowed()) return false;
    return this.#ready() === 0 && this.#parts.turns.hasRoom();
  }

  /** Lets a request wait that was not admitted. False: it must be refused now. */
  enter(call: WaitingCall): boolean {
    if (this.#kinds[CALL_KINDS.indexOf(call.kind)]?.lines.enter(call, this.#parts.now()) !== true) return false;
    this.#endWork ??= this.#parts.work();
    this.#waiting += 1;
    if (this.#looks === 0) this.#look();
    return true;
  }

  /** A call is in flight no more. */
  freed(): void {
    if (this.#looks < Math.min(this.#waiting, LOOKS)) this.#look();
  }

  /** Refuses what has waited too long, and looks for room that no call left; to be called often. */
  tick(): void {
    if (!this.#refusing) this.#refuseLate();
    const most = this.#waiting === 0 ? 0 : Math.min(LOOKS, this.#ready());
    while (this.#looks < most) this.#look();
  }

  /** Refuses all that waits. */
  close(): void {
    this.#refuseUntil(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  readonly #refuseLate = (): void => {
    this.#refusing = this.#refuseUntil(this.#parts.now() - MAX_WAIT_MS, REFUSALS);
    if (this.#refusing) this.#parts.atEnd(this.#refuseLate);
  };

  /** Refuses what has waited since then or longer; true: more of it is left. */
  #refuseUntil(since: number, atMost: number): boolean {
    let left = atMost;
    for (const { lines } of this.#kinds)
      for (let late = lines.takeOldest(since); late !== undefined; late = lines.takeOldest(since)) {
        this.#waiting -= 1;
        if (!late.gone()) late.refuse();
        left -= 1;
        if (left === 0) return true;
      }
    this.#countWork();
    return false;
  }

  /** Only when the last one has begun: a process that drains would end between the two. */
  #countWork(): void {
    if (this.#waiting > 0) return;
    this.#endWork?.();
    this.#endWork = undefined;
  }

  #look(): void {
    this.#looks += 1;
    // The end of the turn is marked before it: calls that wait get what it left.
    this.#parts.turns.came();
    this.#parts.atEnd(this.#lookNow);
  }

  /**
   * Begins one call: between two looks the first pieces of a call are done, so that it is counted
   * before the next one begins. A look that found room leads to two in the next turn, so there are
   * soon as many as calls that fit into one.
   */
  readonly #lookNow = (): void => {
    this.#looks -= 1;
    // Where no more may be in flight the next look follows the end of a call.
    if (this.#ready() === 0) return;
    const room = this.#parts.turns.hasRoomForWaiting() && this.#beginNext();
    this.#countWork();
    const next = Math.min(room ? this.#looks + 2 : Math.max(this.#looks, 1), this.#ready(), LOOKS);
    while (this.#looks < next) this.#look();
  };

  /** Waiting requests that may begin: calls not without a slot. */
  #ready(): number {
    let slotless = 0;
    for (const { takesSlot, lines } of this.#kinds) if (!takesSlot) slotless += lines.size;
    return slotless < this.#waiting && this.#parts.allowed() ? this.#waiting : slotless;
  }

  /** False: what waits must wait on. */
  #beginNext(): boolean {
    const now = this.#parts.now();
    const failed = now - this.#failedAt >= FAILED_EVERY_MS;
    for (let tried = 0; tried < this.#kinds.length; tried += 1) {
      this.#last = (this.#last + 1) % this.#kinds.length;
      const kind = this.#kinds[this.#last];
      if (kind === undefined || kind.lines.size === 0 || (kind.takesSlot && !this.#parts.allowed())) continue;
      for (let next = kind.lines.takeNext(failed); next !== undefined; next = kind.lines.takeNext(failed)) {
        this.#waiting -= 1;
        if (next.gone()) continue;
        if (next.standing === 'failed') this.#failedAt = now;
        next.begin();
        return true;
      }
    }
    return false;
  }
}
