/** One call of the simulation, ended at every point and pair of points. */

import { type PointFault, plannedFate, type Script } from './fate.ts';
import type { MerchantFault } from './merchant.ts';
import type { RailKind } from './rail.ts';
import { type BuyerSketch, type Mutant, NO_MUTANT, simulate } from './seeds.ts';

/** One call, and its faults other than the crash. */
export interface Case {
  readonly name: string;
  readonly rail: RailKind;
  readonly method: 'GET' | 'POST';
  readonly key: string | undefined;
  readonly faults: Omit<Script, 'pointFaults'>;
  /** Other clients with the same proof. */
  readonly others?: readonly BuyerSketch[];
  /** When the buyer sends the call, milliseconds after its signature; 0 unless given. */
  readonly startMs?: number;
  /** 60 unless given. */
  readonly lifeSeconds?: number;
  /** `before` unless given. */
  readonly settle?: 'after';
  /** Whether it needs a mandate; no unless given. */
  readonly mandated?: boolean;
}

/** The same call for a resource that requires a mandate. */
export function underMandate(one: Case): Case {
  return { ...one, name: `${one.name}, under a mandate`, mandated: true };
}

/** The same call, settled after the backend answered. */
export function settledAfter(one: Case): Case {
  return { ...one, name: `${one.name}, settled after the call`, settle: 'after' };
}

/** What a sweep saw. */
export interface Sweep {
  runs: number;
  steps: number;
  readonly failures: Failure[];
}

export interface Failure {
  readonly case: Case;
  /** Point and fault. */
  readonly pointFaults: readonly (readonly [number, PointFault])[];
  readonly violations: readonly string[];
}

const RAIL_FAULTS: Readonly<Record<string, Omit<Script, 'pointFaults'>>> = {
  'all goes well': {},
  'lost before it was sent': { settle: ['before'] },
  'sent, the answer lost': { settle: ['after'] },
  'sent, mined much later': { settle: ['late'] },
  'hangs for a minute': { settle: ['hang'] },
  'refused for good': { settle: ['refused'] },
  'no node takes it at first': { settle: ['excluded', 'excluded'] },
  'no node takes it, and it is mined all the same': { settle: ['lied'] },
  'sent, the answer lost, the chain silent for a while': { settle: ['after'], silentReadings: 4 },
  'no verdict at first': { failedVerdicts: 1 },
};
const MERCHANT_FAULTS: readonly (readonly MerchantFault[])[] = [
  ['fails'],
  ['cut'],
  ['breaks'],
  ['unwritten'],
  ['slow'],
  ['fails', 'cut', 'unwritten', 'slow'],
];

/** Two copies of one proof over two gateways, the first just in time, the second just too late. */
export function copiesInTheLastSeconds(rail: RailKind, method: 'GET' | 'POST'): Case {
  const second = { purchase: 0, input: 'zurich', key: undefined, mayPay: true, gateway: 1, startMs: 10_100 };
  return {
    name: `${method}, ${rail} rail: a copy in the last seconds of the proof`,
    rail,
    method,
    key: undefined,
    faults: {},
    others: [{ ...second, name: 'second copy' }],
    startMs: 8_000,
    lifeSeconds: 15,
  };
}

/** Copies at the same time, one of them by a client that only found the proof. */
export function copiesAtOnce(rail: RailKind, method: 'GET' | 'POST', key?: string): Case {
  const copy = { purchase: 0, input: 'zurich', key, mayPay: true, gateway: 1, startMs: 0 };
  return {
    name: `${method}, ${rail} rail: two copies at once, and a client that found the proof`,
    rail,
    method,
    key,
    faults: {},
    others: [
      { ...copy, name: 'second copy' },
      { ...copy, name: 'finder', input: 'bern', key: undefined, mayPay: false, startMs: 4 },
    ],
  };
}

export const CRASH: PointFault = { kind: 'crash' };
/** Shorter than a lease: the lease stays, but others come first. */
export const SHORT_PAUSE: PointFault = { kind: 'pause', ms: 1_500 };
/** Longer than a lease, so that others take over before the process goes on. */
export const LONG_PAUSE: PointFault = { kind: 'pause', ms: 20_000 };

/** Every variant for one rail, method and key. */
export function casesOf(rail: RailKind, method: 'GET' | 'POST', key?: string): readonly Case[] {
  const withKey = key === undefined ? '' : ', with a key';
  const one = (what: string, faults: Case['faults']): Case => ({
    name: `${method}, ${rail} rail${withKey}: ${what}`,
    rail,
    method,
    key,
    faults,
  });
  return [
    ...Object.entries(RAIL_FAULTS).map(([what, faults]) => one(what, faults)),
    one('the merchant away at first', { away: 2 }),
    one('the buyer leaves while the merchant works', { merchant: ['lags'], patience: [500] }),
    ...MERCHANT_FAULTS.map((backend) => one(`merchant ${backend.join(', then ')}`, { merchant: backend })),
  ];
}

/**
 * The case without faults, then with each fault at each of its points; with `second`, that fault at
 * each point after each crash as well.
 */
export async function sweep(
  cases: readonly Case[],
  pointFaults: readonly PointFault[],
  second?: PointFault,
  mutant: Mutant = NO_MUTANT,
): Promise<Sweep> {
  const seen: Sweep = { runs: 0, steps: 0, failures: [] };
  const run = async (one: Case, injected: Failure['pointFaults']): Promise<number> => {
    const { points, violations, steps } = await runCase(one, injected, mutant);
    seen.runs += 1;
    seen.steps += steps;
    if (violations.length > 0) seen.failures.push({ case: one, pointFaults: injected, violations });
    return points;
  };
  for (const one of cases) {
    const points = await run(one, []);
    for (const fault of pointFaults)
      for (let point = 0; point < points; point += 1) {
        const after = await run(one, [[point, fault]]);
        if (second === undefined) continue;
        for (let later = point + 1; later < after; later += 1)
          await run(one, [
            [point, fault],
            [later, second],
          ]);
      }
  }
  return seen;
}

/** One run of a case with given faults. */
export async function runCase(
  one: Case,
  pointFaults: Failure['pointFaults'],
  mutant: Mutant = NO_MUTANT,
  traced = false,
) {
  const {
    rail,
    method,
    key,
    faults,
    others = [],
    startMs = 0,
    lifeSeconds = 60,
    settle = 'before',
    mandated = false,
  } = one;
  const fate = plannedFate({ ...faults, pointFaults: new Map(pointFaults) });
  const outcome = await simulate(
    {
      setting: { method, rail, honoursKeys: true, payToExclusive: true, backendTimeoutMs: 10_000, settle, mandated },
      buyers: [{ name: 'buyer', purchase: 0, input: 'zurich', key, mayPay: true, gateway: 0, startMs }, ...others],
      fate,
      lifeSeconds: () => lifeSeconds,
    },
    mutant,
    traced,
  );
  return { ...outcome, points: fate.points() };
}

/** The report of a failure: the case, the point of the fault, the broken laws, and every step. */
export async function failureReport(
  { case: one, pointFaults, violations }: Failure,
  mutant: Mutant = NO_MUTANT,
): Promise<string> {
  const { trace } = await runCase(one, pointFaults, mutant, true);
  const injected = pointFaults.map(([point, { kind }]) => `${kind} at point ${point}`).join(', ');
  return [one.name, injected, ...violations, ...trace].join('\n');
}
