/** Runs seeds, and shrinks one that breaks a law. */

import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import type { PaymentRail } from '../../../src/payments/x402/wire/types.ts';
import type { Commits } from '../../../src/store/port/commit.ts';
import { type BuyerPlan, buy, type Ending, Purchase, signer } from './buyer.ts';
import { chanceOf } from './chance.ts';
import { type Fate, seededFate } from './fate.ts';
import { judge } from './laws.ts';
import type { SimChain } from './rail.ts';
import type { HeldRecord } from './store.ts';
import { type Setting, World } from './world.ts';

/** A run of one seed; faults can be left out by number. */
interface SeededRun extends Outcome {
  readonly seed: number;
  readonly spared: readonly number[];
  /** The number of faults that happened. */
  readonly faults: number;
}

/** Two or three calls with one proof, over two gateways. */
export async function runSeed(
  seed: number,
  mutant: Mutant = NO_MUTANT,
  spared: readonly number[] = [],
  traced = false,
): Promise<SeededRun> {
  const chance = chanceOf(~seed);
  const rail = chance.pick(['remote', 'remote', 'local', 'local', 'blind'] as const);
  const fate = seededFate(seed, rail, new Set(spared));
  const plan: Plan = {
    setting: {
      method: chance.pick(['GET', 'POST']),
      rail,
      honoursKeys: chance.happens(0.8),
      payToExclusive: true,
      backendTimeoutMs: chance.pick([2_000, 10_000]),
      settle: mutant.settle ?? (seed % 3 === 0 ? 'after' : 'before'),
      mandated: seed % 2 === 0,
    },
    buyers: crowd(chance.below(1_000_000)),
    fate,
    lifeSeconds: () => chance.pick([15, 60, 120]),
  };
  const outcome = await simulate(plan, mutant, traced);
  return { ...outcome, seed, spared, faults: fate.faults() };
}

/** The smallest set of faults that still breaks a law: leaves out one fault after the other. */
export async function shrink(failed: SeededRun, mutant: Mutant = NO_MUTANT): Promise<SeededRun> {
  let best = failed;
  for (let number = failed.faults - 1; number >= 0; number -= 1) {
    const smaller = await runSeed(failed.seed, mutant, [...best.spared, number]);
    if (smaller.violations.length > 0) best = smaller;
  }
  return runSeed(failed.seed, mutant, best.spared, true);
}

/** The report of a failed run: the broken laws, the command that repeats it, and every step. */
export function report({ seed, spared, violations, trace }: SeededRun): string {
  const without = spared.length === 0 ? '' : ` --without ${spared.join(',')}`;
  return [...violations, `node verification/chaos/sim/main.ts --seed ${seed}${without}`, ...trace].join('\n');
}

/** One to three copies of a call, and sometimes a client that found the proof. */
function crowd(seed: number): readonly BuyerSketch[] {
  const chance = chanceOf(seed);
  const key = chance.happens(0.5) ? 'key-of-the-buyer' : undefined;
  const one = (name: string, more: Partial<BuyerSketch>): BuyerSketch => ({
    name,
    purchase: 0,
    input: 'zurich',
    key,
    mayPay: true,
    gateway: chance.below(2),
    startMs: chance.pick([0, 0, chance.below(50), chance.below(5_000), chance.below(40_000)]),
    ...more,
  });
  const copies = chance.pick([1, 2, 2, 3]);
  const buyers = Array.from({ length: copies }, (_, copy) => one(`copy ${copy + 1}`, {}));
  if (chance.happens(0.2)) buyers.push(one('other input', { input: 'bern', mayPay: false }));
  if (chance.happens(0.2)) buyers.push(one('onlooker', { key: undefined, mayPay: false }));
  if (chance.happens(0.1)) buyers.push(one('other key', { key: 'another-key', mayPay: false }));
  if (chance.happens(0.1))
    buyers.push(one('copy with the other key rule', { key: key === undefined ? 'late-key' : undefined }));
  return buyers;
}

/** A buyer of a plan; buyers with one `purchase` share its proofs. */
export interface BuyerSketch extends Omit<BuyerPlan, 'purchase'> {
  readonly purchase: number;
}

/** One run: its constants, its buyers, and its faults. */
interface Plan {
  readonly setting: Setting;
  readonly buyers: readonly BuyerSketch[];
  readonly fate: Fate;
  /** How long an authorization lives, seconds. */
  readonly lifeSeconds: () => number;
}

interface Outcome {
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

/** A wrong design, made of changed ports: the simulator must notice it. */
export interface Mutant {
  readonly name: string;
  /** One of the laws that it breaks. */
  readonly shows: RegExp;
  /** Of every run; otherwise each seed has its own. */
  readonly settle?: 'after';
  /** It shows only when a process dies at one certain await. */
  readonly needsCrashes?: boolean;
  /** The record that a reservation sees instead of the stored one. */
  reads?(record: HeldRecord, now: number): HeldRecord | undefined;
  /** The port to the store of one process. */
  commits?(commits: Commits, process: string): Commits;
  ledger?(ledger: PaymentLedger): PaymentLedger;
  rail?(rail: PaymentRail, chain: SimChain): PaymentRail;
}
