/** The faults of a simulated run. */

import { type Chance, chanceOf } from './chance.ts';
import type { StoreFault, Wire } from './gateway.ts';
import type { MerchantFault } from './merchant.ts';
import type { RailFaults, RailKind, SettleFault } from './rail.ts';

/**
 * A fault at a point. `crash` and `pause` affect the process of the step, the others a payment: the
 * store loses everything or the last commits, or the payer uses the nonce elsewhere.
 */
export type PointFault =
  | { readonly kind: 'crash' }
  | { readonly kind: 'pause'; readonly ms: number }
  | { readonly kind: 'lose' }
  | { readonly kind: 'rollBack'; readonly ms: number }
  | { readonly kind: 'spend' };

/**
 * All that chance or a plan decides in a run. The order of the calls is fixed, so that a seed
 * repeats a run.
 */
export interface Fate extends Wire, RailFaults {
  /** At a point, before it happens. */
  pointFault(label: string): PointFault | undefined;
  /** Whether a request that had left arrives although its sender is dead or stands still. */
  leftAlready(): boolean;
  merchant(): MerchantFault;
  /** Whether the backend cannot be reached when a call asks for a connection. */
  merchantAway(): boolean;
  /** Whether bytes that the operating system has are lost on the way to the buyer. */
  lineIsCut(): boolean;
  /** How long a buyer waits before it disconnects, milliseconds. */
  patienceMs(): number;
  /** Between the death of a process and the start of the next, milliseconds. */
  restartMs(): number;
  /** Between two rounds of a reconciler, milliseconds. */
  roundMs(): number;
  /** How far a process that starts is off the store's clock, milliseconds. */
  clockErrorMs(): number;
  /** Ends all faults. */
  endFaults(): void;
}

/**
 * Labels that are no points of their own: readings in the background, whose loss changes nothing.
 */
const BACKGROUND: ReadonlySet<string> = new Set(['due', 'look', 'renew']);

/** Whether a crash here shows more than one at the points around it. */
export function isPoint(label: string): boolean {
  return !BACKGROUND.has(label);
}

/** The probability of each fault of a run. */
interface Rates {
  readonly crash: number;
  readonly pause: number;
  readonly lose: number;
  readonly rollBack: number;
  readonly spend: number;
  readonly store: number;
  readonly settle: number;
  readonly merchant: number;
  readonly away: number;
  readonly verdict: number;
  readonly chain: number;
  readonly line: number;
  readonly hangUp: number;
  readonly lagMs: number;
  readonly latency: 'even' | 'uneven' | 'wild';
}

const PAUSES_MS = [400, 3_000, 8_000, 20_000, 70_000] as const;
const SETTLE_FAULTS: readonly SettleFault[] = [
  'before',
  'after',
  'late',
  'late',
  'hang',
  'refused',
  'excluded',
  'lied',
];
const MERCHANT_FAULTS: readonly MerchantFault[] = ['fails', 'cut', 'breaks', 'unwritten', 'slow', 'lags'];
const STORE_FAULTS: readonly StoreFault[] = ['unreceived', 'unanswered', 'late'];
/** Of both directions, within and beyond what a store accepts. */
const CLOCK_ERRORS_MS = [0, 0, 0, -900, 900, -20_000, 20_000] as const;
const PATIENCE_MS = 30_000;
/** With a crash at every second step a run would show only restarts. */
const MOST_POINT_FAULTS = 8;

/**
 * Draws the faults of a run from a seed. Every fault that happens has a number; those in `spared`
 * do not, which makes a failing run smaller.
 */
export function seededFate(
  seed: number,
  rail: RailKind,
  spared: ReadonlySet<number>,
): Fate & { readonly faults: () => number } {
  const latency = chanceOf(seed * 3 + 1);
  const chance = chanceOf(seed * 3 + 2);
  const rates = ratesOf(chanceOf(seed * 3), rail);
  let faultsOver = false;
  let faults = 0;
  let drawn = 0;
  const happens = (probability: number): boolean => {
    if (!chance.happens(probability) || faultsOver) return false;
    faults += 1;
    return !spared.has(faults - 1);
  };
  const drawPointFault = (): PointFault | undefined => {
    if (happens(rates.crash)) return { kind: 'crash' };
    if (happens(rates.pause)) return { kind: 'pause', ms: chance.pick(PAUSES_MS) };
    if (happens(rates.lose)) return { kind: 'lose' };
    if (happens(rates.rollBack)) return { kind: 'rollBack', ms: chance.below(1_000) };
    return happens(rates.spend) ? { kind: 'spend' } : undefined;
  };
  return {
    faults: () => faults,
    latencyMs: (label) => (faultsOver ? 1 : latencyOf(rates.latency, latency, isStore(label))),
    storeFault: () => (happens(rates.store) ? chance.pick(STORE_FAULTS) : undefined),
    pointFault() {
      const fault = drawn < MOST_POINT_FAULTS ? drawPointFault() : undefined;
      if (fault !== undefined) drawn += 1;
      return fault;
    },
    leftAlready: () => chance.happens(0.5),
    settle: () => (happens(rates.settle) ? chance.pick(SETTLE_FAULTS) : 'ok'),
    verifyFails: () => happens(rates.verdict),
    chainSilent: () => happens(rates.chain),
    chainLagMs: () => (faultsOver ? 0 : chance.below(rates.lagMs + 1)),
    lateMs: () => 500 + chance.below(40_000),
    merchant: () => (happens(rates.merchant) ? chance.pick(MERCHANT_FAULTS) : 'ok'),
    merchantAway: () => happens(rates.away),
    lineIsCut: () => happens(rates.line),
    patienceMs: () => (happens(rates.hangUp) ? chance.below(2_000) : PATIENCE_MS),
    restartMs: () => 500 + chance.below(10_000),
    roundMs: () => 300 + latency.below(300),
    clockErrorMs: () => (faultsOver ? 0 : latency.pick(CLOCK_ERRORS_MS)),
    endFaults() {
      faultsOver = true;
    },
  };
}

function ratesOf(chance: Chance, rail: RailKind): Rates {
  const sometimes = (share: number, amount: number): number => (chance.happens(share) ? amount : 0);
  return {
    crash: chance.pick([0, 0.01, 0.03, 0.08]),
    pause: chance.pick([0, 0.01, 0.03, 0.08]),
    lose: rail === 'blind' ? 0 : sometimes(0.2, 0.015),
    rollBack: rail === 'blind' ? 0 : sometimes(0.15, 0.02),
    // Without a chain to ask, a nonce that was used elsewhere passes for paid (x402 4.2).
    spend: rail === 'blind' ? 0 : sometimes(0.12, 0.015),
    store: chance.pick([0, 0, 0.03, 0.15]),
    settle: chance.pick([0, 0.3, 0.7]),
    merchant: chance.pick([0, 0.3, 0.7]),
    verdict: chance.pick([0, 0, 0.2]),
    chain: chance.pick([0, 0, 0.3]),
    line: chance.pick([0, 0.05]),
    hangUp: chance.pick([0, 0.1, 0.3]),
    lagMs: chance.pick([0, 0, 2_500]),
    latency: chance.pick(['even', 'uneven', 'wild']),
    away: chance.pick([0, 0, 0.3]),
  };
}

/** Fractions of a millisecond: clocks of processes are finer than those of stores. */
function latencyOf(kind: Rates['latency'], chance: Chance, toStore: boolean): number {
  const roll = chance.next();
  switch (kind) {
    case 'even':
      return 1;
    case 'uneven':
      return roll * 6;
    case 'wild':
      return roll < 0.8 ? roll * 10 : roll < 0.95 || toStore ? roll * 200 : roll * 3_000;
  }
}

/**
 * Calls to the store have names without a dot; no caller waits for one longer than the timeout of a
 * command.
 */
function isStore(label: string): boolean {
  return !label.includes('.') && label !== 'http';
}

/** Lists of faults. What no list names succeeds. */
export interface Script {
  /** By number of the point. */
  readonly pointFaults: ReadonlyMap<number, PointFault>;
  /** The faults of the first attempts to settle. */
  readonly settle?: readonly SettleFault[];
  /** The faults of the first requests to the backend. */
  readonly merchant?: readonly MerchantFault[];
  /** How long a buyer waits for its first answers, milliseconds. */
  readonly patience?: readonly number[];
  /** How many connections to the backend fail. */
  readonly away?: number;
  /** How many readings of the chain fail. */
  readonly silentReadings?: number;
  /** How many verdicts of the facilitator fail. */
  readonly failedVerdicts?: number;
}

/** Applies the lists, and counts the points of the run. */
interface PlannedFate extends Fate {
  readonly points: () => number;
}

const LATENCY_MS = 1;
const RESTART_MS = 2_000;
const ROUND_MS = 450;
const PLANNED_PATIENCE_MS = 30_000;
/** Longer than a lease. */
const LATE_MS = 9_000;

export function plannedFate(script: Script): PlannedFate {
  const settle = [...(script.settle ?? [])];
  const backend = [...(script.merchant ?? [])];
  const patience = [...(script.patience ?? [])];
  let silent = script.silentReadings ?? 0;
  let away = script.away ?? 0;
  let failing = script.failedVerdicts ?? 0;
  let points = 0;
  let faultsOver = false;
  const takes = (left: number): boolean => left > 0 && !faultsOver;
  return {
    points: () => points,
    latencyMs: () => LATENCY_MS,
    storeFault: () => undefined,
    pointFault() {
      // After `endFaults` there are no new faults: the rest shows the effects of the earlier ones.
      if (faultsOver) return undefined;
      points += 1;
      return script.pointFaults.get(points - 1);
    },
    leftAlready: () => false,
    settle: () => (faultsOver ? 'ok' : (settle.shift() ?? 'ok')),
    verifyFails() {
      if (!takes(failing)) return false;
      failing -= 1;
      return true;
    },
    chainSilent() {
      if (!takes(silent)) return false;
      silent -= 1;
      return true;
    },
    chainLagMs: () => 0,
    lateMs: () => LATE_MS,
    merchant: () => (faultsOver ? 'ok' : (backend.shift() ?? 'ok')),
    merchantAway() {
      if (!takes(away)) return false;
      away -= 1;
      return true;
    },
    lineIsCut: () => false,
    patienceMs: () => (faultsOver ? PLANNED_PATIENCE_MS : (patience.shift() ?? PLANNED_PATIENCE_MS)),
    restartMs: () => RESTART_MS,
    roundMs: () => ROUND_MS,
    clockErrorMs: () => 0,
    endFaults() {
      faultsOver = true;
    },
  };
}
