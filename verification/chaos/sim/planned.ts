/** A fate that is written down before the run. */

import type { Blow, Fate } from './fate.ts';
import type { MerchantFault } from './merchant.ts';
import type { SettleFault } from './rail.ts';

/** A fate written down beforehand. What a list does not say goes well. */
export interface Script {
  /** By number of the point. */
  readonly blows: ReadonlyMap<number, Blow>;
  /** What becomes of the first attempts to settle. */
  readonly settle?: readonly SettleFault[];
  /** What becomes of the first requests to the merchant. */
  readonly merchant?: readonly MerchantFault[];
  /** So many times the merchant cannot be reached when a call asks for a connection. */
  readonly away?: number;
  /** So many readings of the chain fail. */
  readonly silentReadings?: number;
  /** So many verdicts fail. */
  readonly failedVerdicts?: number;
}

/** A fate that keeps to its script and counts the points it saw. */
export interface PlannedFate extends Fate {
  readonly points: () => number;
}

const HOP_MS = 1;
const RESTART_MS = 2_000;
const ROUND_MS = 450;
const PATIENCE_MS = 30_000;
/** Longer than a lease. */
const LATE_MS = 9_000;

export function plannedFate(script: Script): PlannedFate {
  const settle = [...(script.settle ?? [])];
  const backend = [...(script.merchant ?? [])];
  let silent = script.silentReadings ?? 0;
  let away = script.away ?? 0;
  let failing = script.failedVerdicts ?? 0;
  let points = 0;
  let healed = false;
  const takes = (left: number): boolean => left > 0 && !healed;
  return {
    points: () => points,
    latencyMs: () => HOP_MS,
    storeFault: () => undefined,
    strike() {
      // The calm is not for new blows: it shows what is left of the storm.
      if (healed) return undefined;
      points += 1;
      return script.blows.get(points - 1);
    },
    leftAlready: () => false,
    settle: () => (healed ? 'ok' : (settle.shift() ?? 'ok')),
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
    merchant: () => (healed ? 'ok' : (backend.shift() ?? 'ok')),
    merchantAway() {
      if (!takes(away)) return false;
      away -= 1;
      return true;
    },
    lineIsCut: () => false,
    patienceMs: () => PATIENCE_MS,
    restartMs: () => RESTART_MS,
    roundMs: () => ROUND_MS,
    heal() {
      healed = true;
    },
  };
}
