/** The faults of a run, listed in advance. */

import type { Fate, PointFault } from './fate.ts';
import type { MerchantFault } from './merchant.ts';
import type { SettleFault } from './rail.ts';

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
export interface PlannedFate extends Fate {
  readonly points: () => number;
}

const LATENCY_MS = 1;
const RESTART_MS = 2_000;
const ROUND_MS = 450;
const PATIENCE_MS = 30_000;
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
    patienceMs: () => (faultsOver ? PATIENCE_MS : (patience.shift() ?? PATIENCE_MS)),
    restartMs: () => RESTART_MS,
    roundMs: () => ROUND_MS,
    clockErrorMs: () => 0,
    endFaults() {
      faultsOver = true;
    },
  };
}
