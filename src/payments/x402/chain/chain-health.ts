/**
 * Judges the node and our own clock by the readings of a chain, and stops new payments while one of
 * them is wrong; begun ones stay open.
 */

import type { ChainFault, ChainFaultKind } from '../../rail.ts';
import type { FaultLog, PaymentRail } from '../wire/types.ts';
import type { Chain, Evidence, EvidenceQuery } from './chain.ts';
import type { Head } from './node.ts';

/** So many regular new heads without our transactions show that a chain makes blocks by time. */
export const REGULAR_HEADS = 5;
/** Heads are regular up to this ratio of longest to shortest interval: a slot may be missed. */
const REGULAR_WITHIN = 2;
/** Intervals whose median is the pace of a chain. */
const INTERVALS_KEPT = 20;
/** A chain stands still after this time, milliseconds, or so many of its intervals if longer. */
export const STALL_MS = 60_000;
const STALL_INTERVALS = 10;
/** Allowed difference of clock and newest block, milliseconds; a block may be an interval older. */
export const CLOCK_TOLERANCE_MS = 30_000;

/** New heads in a row that must contradict the clock: one may be late, or of another node. */
export const CLOCK_HEADS = 3;
/** Longest pause between readings after which a new head is compared, milliseconds. */
const SILENCE_MS = 10_000;
/** How long logs may lag behind the state that they belong to, milliseconds. */
export const LOGS_LAG_MS = 2_000;
/** Most payments without logs that are read again. */
const MOST_MISSING = 16;

interface Missing {
  readonly query: EvidenceQuery;
  readonly since: number;
  /** When it was last found missing. */
  seen: number;
}

export type ChainHealth = ReturnType<typeof watchChain>;

/** Watches the health of a chain, as its readings show it. */
export function watchChain(bare: Chain, deps: HeadWatchDeps) {
  const { now = () => performance.now() } = deps;
  const heads = watchHeads(deps);
  /** Payments without logs by nonce. */
  const missing = new Map<string, Missing>();

  const note = (query: EvidenceQuery, evidence: Evidence): Evidence => {
    if (evidence.kind === 'unknown') {
      if (evidence.logsMissing !== true) return evidence;
      const known = missing.get(query.nonce);
      if (known !== undefined) known.seen = now();
      else if (missing.size < MOST_MISSING) missing.set(query.nonce, { query, since: now(), seen: now() });
    } else missing.delete(query.nonce);
    return evidence;
  };
  /** The chain, with every reading noted. */
  const chain: Chain = {
    ...bare,
    async readEvidence(query, deadlineMs) {
      return note(query, await bare.readEvidence(query, deadlineMs, heads.saw));
    },
    async head() {
      const head = await bare.head();
      heads.saw(head);
      return head;
    },
  };
  const withoutLogs = (): string | undefined => {
    const lasting = [...missing.values()].find(({ since, seen }) => seen - since >= LOGS_LAG_MS);
    return lasting && `the node shows transaction ${lasting.query.knownTransaction} as successful, without its logs`;
  };
  /** All known faults, the most telling first. */
  const faults = (): readonly ChainFault[] => {
    const causes = { clock: heads.clock(), stall: heads.stall(), missing: withoutLogs() };
    return Object.entries(causes).flatMap(([kind, cause]) =>
      cause === undefined ? [] : [{ kind: kind as ChainFaultKind, cause }],
    );
  };
  return {
    chain,
    faults,
    /** The first of `faults`; undefined when no fault is known. */
    fault: (): ChainFault | undefined => faults()[0],
    /** Reads payments with missing logs again: only a new reading of each ends the fault. */
    async askAgain(): Promise<void> {
      await Promise.all([...missing.values()].map(({ query }) => chain.readEvidence(query)));
    },
    /** Notes that a settlement of ours begins; the returned function ends it. */
    settling: heads.settling,
    /** Milliseconds since a new head was first seen. Undefined before. */
    headAgeMs: heads.ageMs,
  };
}

interface HeadWatchDeps {
  /**
   * `always`: the chain makes blocks by time. `never`: it makes one when there is something to put
   * into it, which looks like standing still. `seen`: its heads decide.
   */
  readonly byTime: 'always' | 'seen' | 'never';
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

export type HeadWatch = ReturnType<typeof watchHeads>;

/**
 * Judges the node of a chain and our clock by the heads. Only a head above all earlier ones counts:
 * behind balancers heads go back. Its time is compared when it is first seen, so a chain that
 * stands still says nothing about the clock.
 */
export function watchHeads({ byTime, now = () => performance.now(), wall = () => Date.now() }: HeadWatchDeps) {
  let highest: Head | undefined;
  let highestSince = 0;
  let lastSeen = 0;
  /** Settlements of ours that run now, and those that ran since the highest head was first seen. */
  let running = 0;
  let ours = 0;
  /** Seconds a block. */
  const intervals: number[] = [];
  const regular: number[] = [];
  let comesByTime = byTime === 'always';
  let wrongHeads = 0;
  let lagMs = 0;

  const intervalMs = (): number => median(intervals) * 1_000;
  const pace = (interval: number, blocks: number): void => {
    keep(intervals, interval, INTERVALS_KEPT);
    if (byTime !== 'seen' || blocks <= ours) return;
    keep(regular, interval, REGULAR_HEADS);
    const shortest = Math.min(...regular);
    comesByTime = regular.length === REGULAR_HEADS && shortest > 0 && Math.max(...regular) <= REGULAR_WITHIN * shortest;
  };
  const compareClock = ({ timestamp }: Head): void => {
    lagMs = wall() - timestamp * 1_000;
    const wrong = lagMs < -CLOCK_TOLERANCE_MS || lagMs > CLOCK_TOLERANCE_MS + intervalMs();
    wrongHeads = wrong ? wrongHeads + 1 : 0;
  };

  return {
    /** Notes a newest block that a node has just shown. */
    saw(head: Head): void {
      const at = now();
      const before = highest;
      const silentMs = at - lastSeen;
      lastSeen = at;
      if (before !== undefined && head.number <= before.number) return;
      highest = head;
      highestSince = at;
      if (before !== undefined) {
        const blocks = Number(head.number - before.number);
        pace((head.timestamp - before.timestamp) / blocks, blocks);
        if (silentMs <= SILENCE_MS) compareClock(head);
      }
      ours = running;
    },
    /**
     * Notes that a settlement of ours begins: it may cause a block. The returned function ends it.
     */
    settling() {
      running += 1;
      ours += 1;
      return (): void => {
        running -= 1;
      };
    },
    /**
     * The cause, for the log, when no new block came for so long that chain or node stands still.
     */
    stall(): string | undefined {
      // Measured between readings: without a reading nothing was seen to stand still.
      const stoodMs = lastSeen - highestSince;
      if (highest === undefined || !comesByTime || stoodMs <= Math.max(STALL_MS, STALL_INTERVALS * intervalMs()))
        return undefined;
      return `no block after ${highest.number} for ${Math.round(stoodMs / 1_000)} s`;
    },
    /** The cause, for the log, when the blocks show that our clock is wrong. */
    clock(): string | undefined {
      if (wrongHeads < CLOCK_HEADS) return undefined;
      const seconds = Math.round(Math.abs(lagMs) / 1_000);
      return `our clock is ${seconds} s ${lagMs > 0 ? 'ahead of' : 'behind'} the newest blocks`;
    },
    /** Milliseconds since a new head was first seen. Undefined before. */
    ageMs: () => (highest === undefined ? undefined : now() - highestSince),
  };
}

function keep(list: number[], item: number, most: number): void {
  list.push(item);
  if (list.length > most) list.shift();
}

/** The median; 0 for an empty list. */
function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const high = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? high) + high) / 2;
}

/**
 * Wraps a rail so that it begins nothing new during a fault. `verify` gives no verdict, so nothing
 * is taken and the buyer comes again. `reconcile` tells what the chain shows, but `unknown` in
 * place of `open`: what a faulty node does not show proves nothing.
 */
export function guardRail(health: ChainHealth, rail: PaymentRail, log: FaultLog): PaymentRail {
  const report = faultReporter(log);
  return {
    ...rail,
    async verify(proof, offer) {
      const fault = health.fault();
      return fault === undefined ? rail.verify(proof, offer) : { kind: 'unavailable', cause: fault.cause };
    },
    async settle(...args) {
      const ended = health.settling();
      try {
        return await rail.settle(...args);
      } finally {
        ended();
      }
    },
    async reconcile(...args) {
      const shown = await rail.reconcile(...args);
      const fault = shown.kind === 'open' ? health.fault() : undefined;
      return fault === undefined ? shown : { kind: 'unknown', cause: fault.cause };
    },
    async check() {
      const [found] = await Promise.all([rail.check(), health.askAgain()]);
      const faults = health.faults();
      report(faults);
      const causes = faults.map(({ kind, cause }) => `${kind}: ${cause}`);
      if (causes.length === 0) return found;
      return { found: 'unreachable', cause: [...(found === undefined ? [] : [found.cause]), ...causes].join('; ') };
    },
    chainState: () => ({ faults: health.faults(), headAgeMs: health.headAgeMs() }),
  };
}

/** Logs what has changed since the last call. */
function faultReporter(log: FaultLog): (faults: readonly ChainFault[]) => void {
  let known: readonly ChainFault[] = [];
  const has = (faults: readonly ChainFault[], kind: ChainFaultKind): boolean => faults.some((one) => one.kind === kind);
  return function report(faults) {
    for (const { kind, cause } of faults)
      if (!has(known, kind))
        log.warn({ fault: kind, cause }, 'the chain node cannot be believed: nothing new is taken');
    for (const { kind } of known)
      if (!has(faults, kind)) log.info({ fault: kind }, 'the chain node can be believed again');
    known = faults;
  };
}
