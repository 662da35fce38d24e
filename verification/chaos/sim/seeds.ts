/** Runs seeds, and shrinks one that breaks a law. */

import { chanceOf } from './chance.ts';
import type { Mutant } from './mutant.ts';
import { type BuyerSketch, NO_MUTANT, type Outcome, type Plan, simulate } from './run.ts';
import { seededFate } from './seeded.ts';

/** A run of one seed; faults can be left out by number. */
export interface SeededRun extends Outcome {
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
