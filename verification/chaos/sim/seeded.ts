/** The faults of a run, drawn from a seed. */

import { type Chance, chanceOf } from './chance.ts';
import type { Fate, PointFault } from './fate.ts';
import type { MerchantFault } from './merchant.ts';
import type { StoreFault } from './process.ts';
import type { RailKind, SettleFault } from './rail.ts';

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
