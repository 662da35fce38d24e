/** The register of mandate uses as a pure table over its entries. */

import type { MandateClaim, OpenMandateUse, RegisterEpoch, UseRefusal } from './register.ts';

/**
 * What the register holds of one open mandate (ap2 10). Units: minor units as decimal text. Times:
 * milliseconds of the clock that the mandate was checked with, 0 for never; `ends` is of the
 * store's clock.
 */
export interface OpenMandateState {
  readonly spent: string;
  /** Held by uses that are neither committed nor released. */
  readonly pending: string;
  readonly uses: number;
  readonly puses: number;
  /** The last use that was committed. */
  readonly last: number;
  /** The last use that is pending. */
  readonly plast: number;
  /** From then on nothing of it counts: no mandate under it can pass any more. */
  readonly ends: number;
}

/** The entries of a register. The commands below run within one write of the store. */
export interface RegisterRows {
  /** Until when an id counts as used, milliseconds of the store's clock; undefined: not used. */
  usedUntil(id: string): number | undefined;
  use(id: string, untilMs: number): void;
  free(id: string): void;
  open(id: string): OpenMandateState | undefined;
  write(id: string, state: OpenMandateState): void;
  remove(id: string): void;
  /** Undefined: the register was emptied. */
  epoch(): RegisterEpoch | undefined;
  begin(epoch: RegisterEpoch): void;
}

const MS = 1_000;
const UNUSED = { spent: '0', pending: '0', uses: 0, puses: 0, last: 0, plast: 0 } as const;

/**
 * Checks everything, then writes everything (ap2 10). Undefined: reserved; else why not, and no use
 * was written. `now`: the store's clock, milliseconds.
 */
export function reserveUses(rows: RegisterRows, claim: MandateClaim, now: number): UseRefusal | undefined {
  const { at, once, onceUntil, open } = claim;
  const epoch = rows.epoch();
  if (epoch === undefined) {
    // A store begins an epoch when it is opened: an emptied register may have forgotten a use.
    rows.begin({ born: now, openFrom: now });
    return 'replayed';
  }
  const { born, openFrom } = epoch;
  if (isOlder(claim, born, now)) return 'replayed';
  if (open.some((use) => isOlder(use, openFrom, now))) return 'open_mandate_spent';
  if (once.some((id) => (rows.usedUntil(id) ?? 0) > now)) return 'replayed';
  for (const use of open) {
    const refusal = refusalOf(currentState(rows, use.id, now), use);
    if (refusal !== undefined) return refusal;
  }
  for (const id of once) rows.use(id, storeTime(onceUntil, at, now));
  for (const use of open) {
    const state = currentState(rows, use.id, now);
    rows.write(use.id, {
      ...state,
      pending: sum(state.pending, unitsOf(use)),
      puses: state.puses + 1,
      plast: Math.max(state.plast, millis(at)),
      ends: Math.max(state.ends, storeTime(use.until, at, now)),
    });
  }
  return undefined;
}

/**
 * Ends what was reserved. The caller knows that it has not been ended before. An open mandate that
 * ended keeps its entry.
 */
export function finishUses(
  rows: RegisterRows,
  { at, once, open }: MandateClaim,
  how: 'commit' | 'release',
  now: number,
): void {
  if (how === 'release') for (const id of once) rows.free(id);
  for (const use of open) {
    const state = currentState(rows, use.id, now);
    if (state.puses === 0) continue;
    const left = finished(state, use, millis(at), how);
    if (left.uses + left.puses === 0) rows.remove(use.id);
    else rows.write(use.id, left);
  }
}

/** When nothing of a claim counts any more, milliseconds of the store's clock. */
export function endOfClaim({ at, onceUntil, open }: MandateClaim, now: number): number {
  return Math.max(...[onceUntil, ...open.map(({ until }) => until)].map((until) => storeTime(until, at, now)));
}

/**
 * The epoch of a register, begun where there is none. `known`: the birth that this gateway has seen
 * before, milliseconds. `first`: what an empty register begins with.
 */
export function keepEpoch(
  found: RegisterEpoch | undefined,
  known: number | undefined,
  first: RegisterEpoch | undefined,
  now: number,
): RegisterEpoch {
  const begun = { born: now, openFrom: now };
  if (found !== undefined)
    // A gateway that started after the loss began it, as at a first start.
    return known !== undefined && found.born > known && found.openFrom === 0 ? begun : found;
  if (known !== undefined) return begun;
  // A second ago: the clocks of gateways differ a little, and checkouts of other signers have their
  // time in whole seconds.
  return first ?? { born: now - MS, openFrom: 0 };
}

/** Whether something was made before `since`, on the store's clock. An unknown age is infinite. */
function isOlder(
  { age = Number.POSITIVE_INFINITY }: { readonly age?: number | undefined },
  since: number,
  now: number,
) {
  return since > 0 && now - Math.ceil(age * MS) < since;
}

function refusalOf(state: OpenMandateState, { recurrence }: OpenMandateUse): UseRefusal | undefined {
  const uses = state.uses + state.puses;
  if (recurrence === undefined) return uses === 0 ? undefined : 'open_mandate_spent';
  const { units, budgetUnits, maxOccurrences, periodStart } = recurrence;
  if (maxOccurrences !== undefined && uses >= maxOccurrences) return 'recurrence_exceeded';
  if (periodStart !== undefined && uses > 0 && Math.max(state.last, state.plast) >= millis(periodStart))
    return 'recurrence_too_soon';
  const wanted = BigInt(state.spent) + BigInt(state.pending) + BigInt(units);
  return wanted > BigInt(budgetUnits) ? 'budget_exceeded' : undefined;
}

/** The units of one use move from pending to spent, or are given back. */
function finished(
  state: OpenMandateState,
  use: OpenMandateUse,
  at: number,
  how: 'commit' | 'release',
): OpenMandateState {
  const puses = state.puses - 1;
  // Of several pending uses only the latest is known by its time.
  const plast = puses === 0 || state.plast === at ? 0 : state.plast;
  const given = { ...state, pending: difference(state.pending, unitsOf(use)), puses, plast };
  if (how === 'release') return given;
  return {
    ...given,
    spent: sum(state.spent, unitsOf(use)),
    uses: state.uses + 1,
    last: Math.max(state.last, at),
  };
}

/** The state of an open mandate; an entry that ended counts for nothing. */
function currentState(rows: RegisterRows, id: string, now: number): OpenMandateState {
  const state = rows.open(id);
  return state === undefined || state.ends <= now ? { ...UNUSED, ends: 0 } : state;
}

function unitsOf({ recurrence }: OpenMandateUse): string {
  return recurrence?.units ?? '0';
}

function sum(a: string, b: string): string {
  return String(BigInt(a) + BigInt(b));
}

function difference(a: string, b: string): string {
  const left = BigInt(a) - BigInt(b);
  return String(left < 0n ? 0n : left);
}

/** Seconds as whole milliseconds. */
function millis(seconds: number): number {
  return Math.floor(seconds * MS);
}

/** A time of the checking clock on the store's own. The two need not agree, only run as fast. */
function storeTime(until: number, at: number, now: number): number {
  return now + millis(until - at);
}
