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

export type Admission = ReturnType<typeof createAdmission>;

/** State of an entrant, which one timer bounds. */
interface Entry {
  readonly entrant: Entrant;
  state: 'waiting' | 'starting' | 'running' | 'over';
  timer: NodeJS.Timeout | undefined;
  /** Among those of its client that wait. */
  place: Place<Entry> | undefined;
}

/**
 * `maxRunning`: exchanges at the same time, those that start included; asked for each of them,
 * because the bound may change while they run. `loopBusy`: whether the event loop has little time
 * left.
 */
export function createAdmission(maxRunning: () => number, loopBusy: () => boolean) {
  /** Waiting entries by client, the client that had no turn for the longest time first. */
  const lines = new Map<string, LinkedList<Entry>>();
  const running = new Shares(maxRunning);
  const places = new Shares(() => MAX_WAITING);
  let starting = 0;

  /** False: it has to wait. */
  const starts = (entry: Entry): boolean => {
    const { entrant } = entry;
    if (starting >= STARTING || !running.enter(entrant.client)) return false;
    leaveLine(entry);
    starting += 1;
    entry.state = 'starting';
    entry.timer = setTimeout(() => started(entry), loopBusy() ? STARTING_MS : CALM_STARTING_MS).unref();
    entrant.start();
    return true;
  };
  const letIn = (): void => {
    // A client that had a turn goes behind the others, and is met there again.
    for (const [, { first }] of lines) {
      if (starting >= STARTING) return;
      if (first !== undefined) starts(first.member);
    }
  };
  const wait = (entry: Entry): void => {
    const { client } = entry.entrant;
    if (!places.enter(client)) {
      refuse(entry, 'full');
      return;
    }
    const line = lines.get(client) ?? new LinkedList();
    lines.set(client, line);
    entry.place = line.add(entry);
    entry.timer = setTimeout(() => refuse(entry, 'waited'), MAX_WAIT_MS).unref();
  };
  const leaveLine = ({ entrant: { client }, place, timer }: Entry): void => {
    clearTimeout(timer);
    const line = place?.list;
    if (place === undefined || line === undefined) return;
    line.remove(place);
    places.leave(client);
    lines.delete(client);
    if (line.size > 0) lines.set(client, line);
  };
  const refuse = (entry: Entry, reason: NotAdmitted): void => {
    leaveLine(entry);
    entry.state = 'over';
    entry.entrant.refuse(reason);
  };
  const started = (entry: Entry): void => {
    if (entry.state !== 'starting') return;
    clearTimeout(entry.timer);
    entry.state = 'running';
    starting -= 1;
    letIn();
  };
  const ended = (entry: Entry): void => {
    const { state } = entry;
    if (state === 'over') return;
    leaveLine(entry);
    entry.state = 'over';
    if (state === 'waiting') return;
    running.leave(entry.entrant.client);
    if (state === 'starting') starting -= 1;
    letIn();
  };
  return {
    /** Starts the entrant now, later or never. */
    enter(entrant: Entrant): Admitted {
      const entry: Entry = { entrant, state: 'waiting', timer: undefined, place: undefined };
      // A client that waits while there is room has its share.
      if (lines.has(entrant.client) || !starts(entry)) wait(entry);
      return { started: () => started(entry), ended: () => ended(entry) };
    },
    running: () => running.taken,
    waiting: () => places.taken,
    /** Whether half of all places to run are taken. */
    crowded: () => 2 * running.taken >= maxRunning(),
  };
}

/** How much of the time the loop may work before it counts as busy. */
const BUSY_SHARE = 0.6;
/** Between two looks, milliseconds. */
const LOOK_MS = 50;

/**
 * Compiles whether the event loop has little time left. The share of the last moments is read at
 * most every `LOOK_MS`, when it is asked for.
 */
export function watchLoopLoad(): () => boolean {
  let last = performance.eventLoopUtilization();
  let lookedAt = performance.now();
  let busy = false;
  return function loopBusy() {
    const now = performance.now();
    if (now - lookedAt < LOOK_MS) return busy;
    const current = performance.eventLoopUtilization();
    busy = performance.eventLoopUtilization(current, last).utilization > BUSY_SHARE;
    last = current;
    lookedAt = now;
    return busy;
  };
}
