/**
 * The share of the process that passed requests get: a few of them start at a time, some more wait
 * for their turn, and those that run are counted. Calls that are sold have slots of their own. No
 * client has all places, of those that run or of those that wait; clients that wait take turns.
 *
 * The event loop is one, so it is the work that begins together which makes a sold call wait, not
 * the number of connections. An exchange costs the loop its beginning and the head of its answer;
 * between the two it costs nothing.
 */

import { LinkedList, type Place } from '../linked-list.ts';
import { Shares } from '../server/rate-limit/shares.ts';

/**
 * Exchanges that start at the same time. Beside a flood of passed requests there are three quarters
 * of the paid calls that there are alone with two, half of them with four, a tenth with 64.
 */
export const STARTING = 2;
/**
 * How long an exchange is counted as starting at most, milliseconds. A backend that takes longer is
 * not what keeps the loop busy, and slow operations must not hold back the quick ones.
 */
export const STARTING_MS = 10;
/** The same while the loop has time: then many slow exchanges may start at once. */
export const CALM_STARTING_MS = 1;
/**
 * Requests that wait for their turn, as many as a listener has connections: a 503 costs as much as
 * an answer, and its client asks again at once.
 */
export const MAX_WAITING = 4_096;
/** How long one waits, milliseconds. */
export const MAX_WAIT_MS = 5_000;

/** Why a request was not let in. */
export type NotAdmitted = 'full' | 'waited';

/** Who asks to be let in. */
interface Entrant {
  /** Whose share of the places it takes. */
  readonly client: string;
  start(): void;
  refuse(reason: NotAdmitted): void;
}

/** The right of one exchange to run. Both may be called more than once. */
export interface Admitted {
  /** The head of the answer is relayed: the next one may start. */
  started(): void;
  /** It is over, or does not wait any more. */
  ended(): void;
}

export interface Admission {
  /** Starts the entrant now, later or never. */
  enter(entrant: Entrant): Admitted;
  running(): number;
  waiting(): number;
  /** Whether half of all places to run are taken. */
  crowded(): boolean;
}

interface Entry {
  readonly entrant: Entrant;
  /** Since when it waits, or is starting. */
  since: number;
  state: 'waiting' | 'starting' | 'running' | 'over';
  /** Among those that wait, or that are starting. */
  place: Place<Entry> | undefined;
  /** Among those of its client that wait. */
  turn: Place<Entry> | undefined;
}

/**
 * `maxRunning`: exchanges at the same time, those that start included; a function is asked for each
 * of them, because the bound may change while they run. `loopBusy`: whether the
 * event loop has little time left.
 */
export function createAdmission(maxRunning: number | (() => number), loopBusy: () => boolean): Admission {
  const bound = typeof maxRunning === 'number' ? () => maxRunning : maxRunning;
  const waiting = new LinkedList<Entry>();
  /** The same by client, the client that had no turn for the longest time first. */
  const turns = new Map<string, LinkedList<Entry>>();
  /** In the order of their start. */
  const starting = new LinkedList<Entry>();
  const running = new Shares(bound);
  const places = new Shares(() => MAX_WAITING);
  let pumping = false;
  let timer: NodeJS.Timeout | undefined;
  /** When the timer looks, milliseconds of the monotonic clock. */
  let lookingAt = Number.POSITIVE_INFINITY;

  /** False: it has to wait. */
  const starts = (entry: Entry): boolean => {
    if (starting.size >= STARTING || !running.enter(entry.entrant.client)) return false;
    leaveWaiting(entry);
    entry.state = 'starting';
    entry.since = performance.now();
    entry.place = starting.add(entry);
    entry.entrant.start();
    return true;
  };
  const wait = (entry: Entry): void => {
    const { client } = entry.entrant;
    const turn = turns.get(client) ?? new LinkedList();
    turns.set(client, turn);
    entry.turn = turn.add(entry);
    entry.place = waiting.add(entry);
  };
  const leaveWaiting = (entry: Entry): void => {
    if (entry.turn === undefined) return;
    const { client } = entry.entrant;
    const turn = entry.turn.list;
    turn?.remove(entry.turn);
    entry.turn = undefined;
    leaveLine(waiting, entry);
    places.leave(client);
    turns.delete(client);
    if (turn !== undefined && turn.size > 0) turns.set(client, turn);
  };
  const startingMs = (): number => (loopBusy() ? STARTING_MS : CALM_STARTING_MS);
  const leaveStart = (entry: Entry): void => {
    if (entry.state !== 'starting') return;
    entry.state = 'running';
    leaveLine(starting, entry);
  };
  /** Drops what has had its time, lets in what there is room for, and looks again when due. */
  const pump = (): void => {
    // Starting an exchange may end another one.
    if (pumping) return;
    pumping = true;
    try {
      letIn();
    } finally {
      pumping = false;
    }
  };
  const letIn = (): void => {
    const now = performance.now();
    const atMostMs = startingMs();
    for (let next = starting.first; next !== undefined; next = starting.first) {
      if (next.member.since + atMostMs > now) break;
      leaveStart(next.member);
    }
    for (let next = waiting.first; next !== undefined; next = waiting.first) {
      if (next.member.since + MAX_WAIT_MS > now) break;
      refuse(next.member, 'waited');
    }
    // A client that had a turn goes behind the others, and is met there again.
    for (const [, { first }] of turns) {
      if (starting.size >= STARTING) break;
      if (first !== undefined) starts(first.member);
    }
    lookAgain(now);
  };
  const lookAgain = (now: number): void => {
    const next = waiting.first?.member;
    if (next === undefined) return;
    const oldest = starting.first?.member;
    const turn =
      oldest === undefined || running.taken >= bound() ? Number.POSITIVE_INFINITY : oldest.since + startingMs();
    const due = Math.min(next.since + MAX_WAIT_MS, turn);
    // A look that comes too early looks again: cheaper than a new timer for every exchange.
    if (lookingAt <= due) return;
    clearTimeout(timer);
    lookingAt = due;
    timer = setTimeout(look, Math.max(1, Math.ceil(due - now))).unref();
  };
  const look = (): void => {
    lookingAt = Number.POSITIVE_INFINITY;
    pump();
  };
  const refuse = (entry: Entry, reason: NotAdmitted): void => {
    leaveWaiting(entry);
    entry.state = 'over';
    entry.entrant.refuse(reason);
  };
  const end = (entry: Entry): void => {
    const { state } = entry;
    if (state === 'over') return;
    entry.state = 'over';
    leaveWaiting(entry);
    if (state === 'waiting') return;
    running.leave(entry.entrant.client);
    leaveLine(starting, entry);
  };
  return {
    enter(entrant) {
      const entry: Entry = { entrant, since: performance.now(), state: 'waiting', place: undefined, turn: undefined };
      if (waiting.size === 0 && starting.size >= STARTING) pump();
      // A client that waits while there is room has its share.
      if (turns.has(entrant.client) || !starts(entry)) {
        if (!places.enter(entrant.client)) refuse(entry, 'full');
        else wait(entry);
        lookAgain(entry.since);
      }
      return {
        started() {
          leaveStart(entry);
          if (waiting.size > 0) pump();
        },
        ended() {
          end(entry);
          if (waiting.size > 0) pump();
        },
      };
    },
    running: () => running.taken,
    waiting: () => waiting.size,
    crowded: () => 2 * running.taken >= bound(),
  };
}

function leaveLine(line: LinkedList<Entry>, entry: Entry): void {
  if (entry.place !== undefined) line.remove(entry.place);
  entry.place = undefined;
}
