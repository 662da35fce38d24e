/** Runs one plan of the simulation to its end. */

import { type BuyerPlan, buy, type Ending, Purchase, signer } from './buyer.ts';
import type { Fate } from './fate.ts';
import type { Mutant } from './mutant.ts';
import type { Setting } from './setting.ts';
import { judge } from './verdict.ts';
import { World } from './world.ts';

/** A buyer of a plan; buyers with one `purchase` share its proofs. */
export interface BuyerSketch extends Omit<BuyerPlan, 'purchase'> {
  readonly purchase: number;
}

/** One run: its constants, its buyers, and its faults. */
export interface Plan {
  readonly setting: Setting;
  readonly buyers: readonly BuyerSketch[];
  readonly fate: Fate;
  /** How long an authorization lives, seconds. */
  readonly lifeSeconds: () => number;
}

export interface Outcome {
  readonly violations: readonly string[];
  /** How the buyers' calls ended, in the order of the plan. */
  readonly endings: readonly Ending[];
  readonly steps: number;
  readonly trace: readonly string[];
}

/** Longest time with faults, milliseconds of the simulated clock. */
const STORM_MS = 10 * 60 * 1_000;
/**
 * From the end of the storm until nothing may be open: the longest authorization, a lease, a look
 * of the slowest kind, twice.
 */
const QUIET_MS = 15 * 60 * 1_000;
const LATE_RETRIES_MS = 10 * 60 * 1_000;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** A run with more steps than this does not end. */
const MOST_STEPS = 30_000;
const ATTEMPTS = 12;

export const NO_MUTANT: Mutant = { name: 'none', shows: /^$/ };

/**
 * Runs a plan to its end: the time with faults, the time without, the late retries of all buyers
 * without an answer, and the day after which no payment may be open. Everything that waits, waits
 * for the clock of the schedule.
 */
export async function simulate(plan: Plan, mutant: Mutant = NO_MUTANT, traced = false): Promise<Outcome> {
  const world = new World(plan.setting, plan.fate, mutant, traced);
  const { schedule, laws } = world;
  const realNow = performance.now;
  const realDepth = Error.stackTraceLimit;
  // The middleware measures with it how long a call has waited, and a rule of `src/payments`
  // depends on that.
  performance.now = () => schedule.now;
  // Most errors here are faults of the plan; their stacks would be half the cost of the run.
  Error.stackTraceLimit = 0;
  try {
    const sign = signer(
      () => schedule.now,
      plan.lifeSeconds,
      (proof) => world.signed(proof),
    );
    const purchases = new Map<number, Purchase>();
    const buyers = plan.buyers.map((sketch) => {
      const purchase = purchases.get(sketch.purchase) ?? new Purchase(sign);
      purchases.set(sketch.purchase, purchase);
      return { ...sketch, purchase };
    });
    const endings: Ending[] = buyers.map(() => 'open');
    const begin = (attempts: number): void => {
      buyers.forEach((buyer, index) => {
        if (endings[index] === 'answered') return;
        void world
          .sleep(buyer.startMs)
          .then(() => buy(buyer, world, attempts))
          .then((ending) => {
            endings[index] = ending;
          });
      });
    };
    const pass = async (ms: number): Promise<void> => {
      if (!(await schedule.run(world, schedule.now + ms, MOST_STEPS))) laws.broken('it goes on for ever');
    };
    begin(ATTEMPTS);
    await pass(STORM_MS);
    world.endFaults();
    await pass(QUIET_MS);
    judge.quiet(world);
    begin(ATTEMPTS);
    await pass(LATE_RETRIES_MS);
    judge.buyers(world, buyers, endings);
    if (!judge.undecidable(world)) await pass(2 * DAY_MS);
    judge.end(world, [...purchases.values()]);
    return { violations: laws.violations, endings, steps: schedule.steps, trace: schedule.trace ?? [] };
  } finally {
    performance.now = realNow;
    Error.stackTraceLimit = realDepth;
  }
}
