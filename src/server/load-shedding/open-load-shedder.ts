/** Opens the load shedder of a process and the watch over its event loop. */

import type { IncomingMessage } from 'node:http';
import type { IdPrefixes } from '../http/request-id.ts';
import { type EventLoopLag, readEventLoopLag, Turns } from './event-loop-lag.ts';
import { createLoadShedder, createShedding, type LoadShedder, type Shedding, type ShedReason } from './load-shedder.ts';
import { JUDGE_MS, OverloadDetector } from './overload-detector.ts';
import { createSlots, type Slots } from './slots.ts';

/** Between two reports of shed calls, milliseconds: one for each call would cost more than it. */
const REPORT_MS = 1_000;

/** How many calls were refused, by reason. */
type ShedCount = Readonly<Record<ShedReason, number>>;

interface OpenLoadShedderParts {
  /** As in `createSlots`. */
  readonly maxInFlight: number | (() => number);
  /** The mounts of the adapters that take messages, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly draining: () => boolean;
  /** Tells calls at the backend's own address and requests that pass; undefined: there are none. */
  readonly routeOf?: ((req: IncomingMessage) => { readonly kind: string }) | undefined;
  /** Called with what was shed since the last time, at most once in REPORT_MS. */
  readonly onShed: (shed: ShedCount) => void;
  /** What the event loop does; this process's own unless given. */
  readonly loop?: () => EventLoopLag;
}

/** The load shedder, and the slots of the calls that it admitted. */
export interface OpenedLoadShedder {
  readonly loadShedder: LoadShedder;
  readonly slots: Slots;
  /**
   * The same decision for an adapter that answers itself, with a cap of its own beside that of all
   * calls. A call that gets a reason is counted as shed and must be refused.
   */
  sheddingFor(cap: Pick<Slots, 'free'>): Shedding;
  /** Since the start. */
  shed(): ShedCount;
  close(): void;
}

/** Opens the load shedder, which watches the event loop until it is closed. */
export function openLoadShedder({
  maxInFlight,
  mounts,
  draining,
  onShed,
  routeOf,
  loop,
}: OpenLoadShedderParts): OpenedLoadShedder {
  const slots = createSlots(maxInFlight);
  const overload = new OverloadDetector();
  const turns = new Turns();
  const read = loop ?? readEventLoopLag(turns);
  const shed = { overload: 0, in_flight: 0 };
  let reported: ShedCount = { ...shed };
  let reportedAt = performance.now();
  const report = (now: number): void => {
    reportedAt = now;
    const since = { overload: shed.overload - reported.overload, in_flight: shed.in_flight - reported.in_flight };
    reported = { ...shed };
    if (since.overload + since.in_flight > 0) onShed(since);
  };
  const watch = setInterval(() => {
    const now = performance.now();
    overload.judge(read(), slots.inFlight(), now);
    if (now - reportedAt >= REPORT_MS) report(now);
  }, JUDGE_MS).unref();
  const count = (reason: ShedReason): void => {
    shed[reason] += 1;
  };
  return {
    loadShedder: createLoadShedder({
      shedding: createShedding({ slots, overload, turns }),
      mounts,
      draining,
      onShed: count,
      routeOf,
    }),
    slots,
    sheddingFor(cap) {
      const both = { free: () => slots.free() && cap.free(), inFlight: () => slots.inFlight() };
      const shedding = createShedding({ slots: both, overload, turns });
      return function shedAndCount() {
        const reason = shedding();
        if (reason !== undefined) count(reason);
        return reason;
      };
    },
    shed: () => ({ ...shed }),
    close() {
      clearInterval(watch);
      report(performance.now());
    },
  };
}
