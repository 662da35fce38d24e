/** The report of a run. */

import type { Action, Controller } from './controller.ts';
import { isSettledAfter } from './fleet.ts';
import { type Evidence, type Excused, GOALS, type Goal, type Violation } from './goals.ts';
import { isPaid, worksFor } from './judge.ts';
import type { Plan } from './plan.ts';
import type { CallStory } from './story.ts';

/** The results of a run. */
export interface Outcome extends Evidence {
  readonly violations: readonly Violation[];
  readonly excused: Excused;
  readonly kills: Controller['kills'];
  readonly actions: readonly Action[];
  readonly faults: Readonly<Record<string, number>>;
  readonly settleCalls: number;
  /** From the last fault to the last open record, milliseconds. */
  readonly recoveryMs: number;
  readonly complaints: readonly string[];
}

/** What a run measured against its goals, as one JSON line. */
export interface Report {
  readonly seed: number;
  readonly tookMs: number;
  readonly calls: number;
  /** Calls with a payment that the chain shows. */
  readonly paidCalls: number;
  readonly kinds: Readonly<Record<string, number>>;
  /** Of the calls whose money moves after the backend answered. */
  readonly after: {
    readonly calls: number;
    readonly paid: number;
    /** Proofs for which the backend worked and that are not paid. */
    readonly unpaidWork: number;
    /** Proofs that bought what the backend had made for an earlier one. */
    readonly boughtLater: number;
  };
  /** Calls with an answer, by the channel of their buyer. */
  readonly channels: Readonly<Record<string, number>>;
  /** How the calls ended for the buyers. */
  readonly endings: Readonly<Record<string, number>>;
  readonly proofs: number;
  readonly settleCalls: number;
  /** Records that were made again from the chain. */
  readonly recovered: number;
  readonly kills: Controller['kills'];
  readonly faults: Readonly<Record<string, number>>;
  readonly cuts: readonly { readonly windowMs: number; readonly lostBytes: number }[];
  /** All have to be 0. */
  readonly goals: Readonly<Record<Goal, number>>;
  /** What power cuts lost, and how much they may lose. */
  readonly excused: Excused;
  readonly recoveryMs: number;
  /** Present after a violation, for a replay. */
  readonly violations?: readonly Violation[];
  readonly actions?: readonly Action[];
  readonly complaints?: readonly string[];
}

export function reportOf(plan: Plan, outcome: Outcome, tookMs: number): Report {
  const {
    calls,
    chain,
    store,
    violations,
    excused,
    kills,
    actions,
    faults,
    settleCalls,
    cuts,
    recoveryMs,
    complaints,
  } = outcome;
  const goals = Object.fromEntries(
    GOALS.map((goal) => [goal, violations.filter((violation) => violation.goal === goal).length]),
  ) as Record<Goal, number>;
  return {
    seed: plan.seed,
    tookMs,
    calls: calls.length,
    paidCalls: calls.filter(({ proofs }) => proofs.some((proof) => isPaid(chain, proof))).length,
    after: settledAfter(outcome),
    kinds: counted(calls.map(({ kind }) => kind)),
    channels: counted(calls.filter((call) => endingOf(call) === 'answered').map(({ channel }) => channel)),
    endings: counted(calls.map(endingOf)),
    proofs: calls.flatMap(({ proofs }) => proofs).length,
    settleCalls,
    recovered: [...store.payments.values()].filter(({ recovered }) => recovered).length,
    kills,
    faults,
    cuts: cuts.map(({ sampledAt, killedAt, lostBytes }) => ({ windowMs: killedAt - sampledAt, lostBytes })),
    goals,
    excused,
    recoveryMs,
    ...(violations.length === 0 ? {} : { violations, actions, complaints }),
  };
}

function settledAfter({ calls, chain, work }: Evidence): Report['after'] {
  const after = calls.filter(({ target }) => isSettledAfter(target.resource));
  const proofs = after.flatMap((call) =>
    call.proofs.map((proof) => ({ call, proof, own: work.get(proof.merchantKey) })),
  );
  return {
    calls: after.length,
    paid: proofs.filter(({ proof }) => isPaid(chain, proof)).length,
    unpaidWork: proofs.filter(({ proof, own }) => own !== undefined && !isPaid(chain, proof)).length,
    boughtLater: proofs.filter(
      ({ call, proof, own }) => own === undefined && proof.answers.length > 0 && worksFor(call, proof, work).length > 0,
    ).length,
  };
}

function endingOf({ proofs }: CallStory): string {
  if (proofs.some(({ answers }) => answers.length > 0)) return 'answered';
  const refusal = proofs.at(-1)?.refusals.at(-1);
  if (refusal !== undefined) return `refused ${refusal.code} ${refusal.state ?? ''}`;
  return proofs.some(({ challenges }) => challenges.length > 0) ? 'refused' : 'open';
}

function counted(names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));
}
