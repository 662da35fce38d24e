import type { IdPrefixes } from '../http/request-id.ts';
import { type EventLoopLag, readEventLoopLag, Turns } from './event-loop-lag.ts';
import { createLoadShedder, createShedding, type LoadShedder, type Shedding, type ShedReason } from './load-shedder.ts';
import { JUDGE_MS, OverloadDetector } from './overload-detector.ts';
import { createSlots, type Slots } from './slots.ts';

/**
 * How often what was shed is told, milliseconds: a line for each call would cost more than its
 * refusal.
 */
const REPORT_MS = 1_000;

/** How many calls were refused, by reason. */
type ShedCount = Readonly<Record<ShedReason, number>>;

/** What an open load shedder is made of. */
interface OpenLoadShedderParts {
  readonly maxInFlight: number;
  /** See `DoorParts`. */
  readonly mounts: IdPrefixes;
  readonly draining: () => boolean;
  /** Told what was shed since the last time, at most once in REPORT_MS. */
  readonly onShed: (shed: ShedCount) => void;
  /** What the event loop does; this process's own unless given. */
  readonly loop?: () => EventLoopLag;
}

/** The load shedder, and the slots of the calls that it let in. */
export interface OpenedLoadShedder {
  readonly loadShedder: LoadShedder;
  readonly slots: Slots;
  /**
   * What the load shedder asks, for an adapter that answers itself: with a cap of its own beside
   * that of all calls. Whom it has a reason for must be refused; he is counted.
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
  loop,
}: OpenLoadShedderParts): OpenedLoadShedder {
  const places = createSlots(maxInFlight);
  const pressure = new OverloadDetector();
  const turns = new Turns();
  const read = loop ?? readEventLoopLag(turns);
  const shed = { overload: 0, in_flight: 0 };
  let told: ShedCount = { ...shed };
  let toldAt = performance.now();
  const tell = (now: number): void => {
    toldAt = now;
    const since = { overload: shed.overload - told.overload, in_flight: shed.in_flight - told.in_flight };
    told = { ...shed };
    if (since.overload + since.in_flight > 0) onShed(since);
  };
  const watch = setInterval(() => {
    const now = performance.now();
    pressure.judge(read(), places.inFlight(), now);
    if (now - toldAt >= REPORT_MS) tell(now);
  }, JUDGE_MS).unref();
  const count = (reason: ShedReason): void => {
    shed[reason] += 1;
  };
  return {
    loadShedder: createLoadShedder({
      shedding: createShedding({ places, pressure, turns }),
      mounts,
      draining,
      onShed: count,
    }),
    slots: places,
    sheddingFor(cap) {
      const both = { free: () => places.free() && cap.free(), inFlight: () => places.inFlight() };
      const shedding = createShedding({ places: both, pressure, turns });
      return function shedAndCount() {
        const reason = shedding();
        if (reason !== undefined) count(reason);
        return reason;
      };
    },
    shed: () => ({ ...shed }),
    close() {
      clearInterval(watch);
      tell(performance.now());
    },
  };
}
