/** Opens the load shedder of a process and the watch over its event loop. */

import type { IncomingMessage } from 'node:http';
import type { IdPrefixes } from '../http/request-id.ts';
import { CallQueue } from './call-queue.ts';
import { type EventLoopLag, readEventLoopLag, Turns } from './event-loop-lag.ts';
import { InFlightLimit, JUDGE_MS, LEAST_IN_FLIGHT } from './in-flight-limit.ts';
import { createLoadShedder, type Shedding, type ShedReason } from './load-shedder.ts';
import type { ProofStanding } from './proof-standing.ts';
import { createSlots, type Slots } from './slots.ts';

/** Between two reports of shed calls, milliseconds: one for each call would cost more than it. */
const REPORT_MS = 1_000;
/**
 * No call takes longer, milliseconds: 120 s of a backend (contract 3), 60 s of its settlement, and
 * some for its waits.
 */
const LONGEST_CALL_MS = 240_000;

/** How many calls were refused, by reason. */
type ShedCount = Readonly<Record<ShedReason, number>>;

interface OpenLoadShedderParts {
  /** As in `createSlots`. */
  readonly maxInFlight: number | (() => number);
  /** The mounts of the adapters that take messages, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly lifecycle: {
    readonly draining: () => boolean;
    /** Counts work that must end before the process does, until the result is called. */
    readonly begin: () => () => void;
  };
  /** Whether the head of a request carries a payment proof. */
  readonly carriesProof: (req: IncomingMessage) => boolean;
  readonly proofs: ProofStanding;
  /** Tells calls at the backend's own address and requests that pass; undefined: there are none. */
  readonly routeOf?: ((req: IncomingMessage) => { readonly kind: string }) | undefined;
  /** Called with what was shed since the last time, at most once in REPORT_MS. */
  readonly onShed: (shed: ShedCount) => void;
  /** Called with the number of slots that outlived the longest call and are free again. */
  readonly onLost: (slots: number) => void;
  /** What the event loop does; this process's own unless given. */
  readonly loop?: () => EventLoopLag;
}

export type OpenedLoadShedder = ReturnType<typeof openLoadShedder>;

/**
 * Opens the load shedder, which watches the event loop until it is closed, and the slots of the
 * calls that it admitted.
 */
export function openLoadShedder(parts: OpenLoadShedderParts) {
  const { maxInFlight, mounts, lifecycle, carriesProof, proofs, routeOf, onShed, onLost } = parts;
  const turns = new Turns();
  const limit = new InFlightLimit();
  const slots = createSlots(maxInFlight, () => {
    limit.ended();
    queue.freed();
  });
  const queue = new CallQueue({
    turns,
    allowed: () => slots.free() && limit.allows(slots.inFlight()),
    work: () => lifecycle.begin(),
  });
  const read = parts.loop ?? readEventLoopLag(turns);
  const shed = { overload: 0, in_flight: 0 };
  let reported: ShedCount = { ...shed };
  let reportedAt = performance.now();
  const allSlots = new Set([slots]);
  let lost = 0;
  const freeLost = (now: number): void => {
    let count = 0;
    for (const each of allSlots) count += each.freeLost(now - LONGEST_CALL_MS);
    lost += count;
    if (count > 0) onLost(count);
  };
  const report = (now: number): void => {
    reportedAt = now;
    const since = { overload: shed.overload - reported.overload, in_flight: shed.in_flight - reported.in_flight };
    reported = { ...shed };
    if (since.overload + since.in_flight > 0) onShed(since);
  };
  const watch = setInterval(() => {
    const now = performance.now();
    limit.judge(read());
    queue.tick();
    if (now - reportedAt < REPORT_MS) return;
    report(now);
    freeLost(now);
  }, JUDGE_MS).unref();
  const count = (reason: ShedReason): void => {
    shed[reason] += 1;
  };
  return {
    loadShedder: createLoadShedder({
      queue,
      turns,
      mounts,
      draining: () => lifecycle.draining(),
      reason: () => (slots.free() ? 'overload' : 'in_flight'),
      onShed: count,
      carriesProof,
      proofs,
      routeOf,
    }),
    slots,
    /**
     * A decision at once, for an adapter that answers itself, with a cap of its own beside that of
     * all calls. A call that gets a reason is counted as shed and must be refused.
     */
    sheddingFor(cap: Slots): Shedding {
      allSlots.add(cap);
      return function shedAndCount() {
        turns.came();
        const reason = reasonFor(slots, cap, limit);
        if (reason !== undefined) count(reason);
        return reason;
      };
    },
    /** Since the start. */
    shed: (): ShedCount => ({ ...shed }),
    /** Slots that outlived the longest call, since the start: more than 0 is a bug. */
    lost: () => lost,
    /** Calls that wait for their turn. */
    waiting: () => queue.waiting(),
    close(): void {
      clearInterval(watch);
      queue.close();
      report(performance.now());
    },
  };
}

/**
 * Why a call that cannot wait is refused. The calls that wait fill the limit again and again, so
 * such calls have a few slots beyond it.
 */
function reasonFor(
  slots: Pick<Slots, 'free' | 'inFlight'>,
  cap: Pick<Slots, 'free'>,
  limit: InFlightLimit,
): ShedReason | undefined {
  if (!slots.free() || !cap.free()) return 'in_flight';
  return slots.inFlight() < limit.calls + LEAST_IN_FLIGHT ? undefined : 'overload';
}
