/**
 * The register of mandate uses (ap2 10): its port, its pure table, and the table over documents of
 * the store.
 */

import { type Changes, type Decision, parsed, type Read, type Transact } from '../store/port/commit.ts';
import { isMandateClaim } from './stored-mandate.ts';

/**
 * The uses of one accepted presentation. Times: unix seconds of the clock that the mandate was
 * checked with; a store keeps each entry for the difference to `at`, on its own clock. Units: minor
 * units of the currency as a decimal string, at most 2^53 - 1.
 */
export interface MandateClaim {
  /** When it was presented. */
  readonly at: number;
  /** How old its checkout was then, seconds, to the millisecond where known; undefined: unknown. */
  readonly age?: number | undefined;
  /** Ids that may be used once: `m:` and that of a closed mandate, `j:` and that of a checkout. */
  readonly once: readonly string[];
  /** The end of the memory of `once`: after it no check of times can pass (ap2 9, ap2 10). */
  readonly onceUntil: number;
  /** The open mandates that it was made under. */
  readonly open: readonly OpenMandateUse[];
}

/** One use of an open mandate. */
export interface OpenMandateUse {
  readonly id: string;
  /** How old it was when it was presented, seconds; undefined: it does not say when it was made. */
  readonly age?: number | undefined;
  /** The end of the memory of its uses: its own end, the skew and a margin. */
  readonly until: number;
  /** Undefined: it may be used once. */
  readonly recurrence: Recurrence | undefined;
}

/** The limits of a mandate that may be used again. */
export interface Recurrence {
  /** Amount of this use. */
  readonly units: string;
  readonly budgetUnits: string;
  readonly maxOccurrences: number | undefined;
  /** When the present calendar period began; undefined: uses need not be apart. */
  readonly periodStart: number | undefined;
}

/**
 * The beginning of a register's memory (ap2 10), milliseconds of the store's clock. A mandate that
 * may have been used earlier is refused: an emptied store would otherwise accept it a second time.
 * The two times differ because a first start and a loss look alike in the store:
 *
 * - No checkout from before `born` is accepted. A first start refuses none, because a register
 *   begins before the gateway hands out its first checkout. After a loss a buyer makes a mandate
 *   for a fresh checkout. A closed mandate is refused together with its checkout.
 * - No open mandate from before `openFrom` is accepted. Open mandates may be older than a gateway
 *   that starts, so at a first start it is 0. A gateway that knows of an earlier register sets it
 *   to `born`: until older open mandates end, the sums spent under them are unknown.
 */
export interface RegisterEpoch {
  /** 0: nothing was ever forgotten. */
  readonly born: number;
  /** 0: no register was lost, or the operator accepts older open mandates all the same. */
  readonly openFrom: number;
}

/**
 * Reasons why a right mandate cannot be used now (ap2 8). A mandate that may have been used before
 * a loss of data gets the reason of a used one.
 */
export type UseRefusal =
  | 'replayed'
  | 'open_mandate_spent'
  | 'budget_exceeded'
  | 'recurrence_exceeded'
  | 'recurrence_too_soon';

export type Used = { readonly kind: 'reserved' } | { readonly kind: 'refused'; readonly reason: UseRefusal };

/**
 * The register of uses (ap2 10) for calls that pay nothing. A paid call keeps its claim in the
 * payment record, which reserves it in the same write: a settled payment commits it, a deleted or
 * refused one releases it, an uncertain one holds it.
 */
export interface MandateRegister {
  /**
   * Checks everything, then writes everything, in one write. The same name gets the same answer
   * until it is finished.
   * @throws StoreError, RangeError a bug of the caller
   */
  reserve(name: string, claim: MandateClaim): Promise<Used>;
  /**
   * `commit`: the claim was used. `release`: it certainly was not. Until then it stays reserved. A
   * second call changes nothing, and a committed claim is not released.
   * @throws StoreError
   */
  finish(name: string, how: 'commit' | 'release'): Promise<void>;
}

/**
 * The register's entry of one open mandate (ap2 10). Units: minor units as decimal text. Times:
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
  /** The end of the entry: no mandate under this open mandate can pass any more. */
  readonly ends: number;
}

/** The entries of a register. The commands below run within one write of the store. */
export type RegisterRows = Omit<ReturnType<typeof registerIn>, 'documents'>;

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
    // An opened store has an epoch: a register without one was emptied and may lack a use.
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
 * Ends a reserved claim, which the caller has not ended before. An open mandate whose entry has
 * ended keeps that entry.
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
function endOfClaim({ at, onceUntil, open }: MandateClaim, now: number): number {
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
    // A gateway that did not know of the loss began the epoch as at a first start.
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
  // The state has the time of the latest pending use only.
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

/** Converts a time of the checking clock to the store's: they may differ, but run as fast. */
function storeTime(until: number, at: number, now: number): number {
  return now + millis(until - at);
}

/** Longest name of a call, characters. */
const MAX_NAME_LENGTH = 256;

const onceKey = (id: string): string => `ap2:once:${id}`;
const openKey = (id: string): string => `ap2:open:${id}`;
const heldKey = (name: string): string => `ap2:held:${name}`;
export const EPOCH_KEY = 'ap2:epoch';

/** The keys that the table reads to reserve a claim. */
export function claimKeys(claim: MandateClaim): readonly string[] {
  return [EPOCH_KEY, ...claim.once.map(onceKey), ...openKeys(claim)];
}

/** The keys that the table reads to end a claim. */
export function openKeys({ open }: MandateClaim): readonly string[] {
  return open.map(({ id }) => openKey(id));
}

/** The register inside a decision: `documents` has what the table wrote. */
export function registerIn(read: Read) {
  const written = new Map<string, Changes['documents'][number]>();
  const put = (change: Changes['documents'][number]): void => void written.set(change.key, change);
  return {
    /** Until when an id counts as used, milliseconds of the store's clock; undefined: not used. */
    usedUntil(id: string): number | undefined {
      const until = read(onceKey(id))?.value;
      return until === undefined ? undefined : Number(until);
    },
    use: (id: string, untilMs: number) => put({ key: onceKey(id), value: String(untilMs), endMs: untilMs }),
    free: (id: string) => put({ key: onceKey(id), value: null }),
    open: (id: string) => parsed<OpenMandateState>(openKey(id), read(openKey(id))),
    write: (id: string, state: OpenMandateState) =>
      put({ key: openKey(id), value: JSON.stringify(state), endMs: state.ends, made: state }),
    remove: (id: string) => put({ key: openKey(id), value: null }),
    /** Undefined: the register was emptied. */
    epoch: () => parsed<RegisterEpoch>(EPOCH_KEY, read(EPOCH_KEY)),
    begin: (epoch: RegisterEpoch) => put({ key: EPOCH_KEY, value: JSON.stringify(epoch), made: epoch }),
    documents: (): Changes['documents'] => [...written.values()],
  };
}

/** Writes a use to a replica before the backend is called: a failover could allow it again. */
export function documentRegister(transact: Transact): MandateRegister {
  return {
    async reserve(name, claim) {
      assertCallName(name);
      if (!isMandateClaim(claim)) throw new RangeError('a claim of a mandate is out of its bounds');
      return transact([heldKey(name), ...claimKeys(claim)], (read, now): Decision<Used> => {
        const held = { key: heldKey(name), value: JSON.stringify(claim), endMs: endOfClaim(claim, now) };
        if (read(heldKey(name)) !== undefined)
          // Written again: a replica may not have it yet.
          return { answer: { kind: 'reserved' }, changes: { documents: [held], how: 'replicated' } };
        const register = registerIn(read);
        const reason = reserveUses(register, claim, now);
        const documents = register.documents();
        if (reason === undefined)
          return { answer: { kind: 'reserved' }, changes: { documents: [...documents, held], how: 'replicated' } };
        return { answer: { kind: 'refused', reason }, ...(documents.length === 0 ? {} : { changes: { documents } }) };
      });
    },
    async finish(name, how) {
      assertCallName(name);
      await transact([], (read, now) => {
        const claim = parsed<MandateClaim>(heldKey(name), read(heldKey(name)));
        if (claim === undefined) return { answer: undefined };
        const register = registerIn(read);
        finishUses(register, claim, how, now);
        return {
          answer: undefined,
          changes: { documents: [...register.documents(), { key: heldKey(name), value: null }] },
        };
      });
    },
  };
}

/** @throws RangeError a bug of the caller */
function assertCallName(name: string): void {
  if (name === '' || name.length > MAX_NAME_LENGTH || !name.isWellFormed())
    throw new RangeError('the name of a call is out of its bounds');
}
