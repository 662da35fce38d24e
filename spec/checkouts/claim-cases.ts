import type { ClaimRecord, LockRecord, OpenEnd, SessionEnd, Standing } from '../../src/checkouts/claim-table.ts';

/** The store's clock, milliseconds. */
export const NOW = 1_000_000;
export const KEY = 'this key';
export const OTHER_KEY = 'another key';
export const ME = 'me';
export const BODY = 'body';
/** The fence of every attempt that is found. */
export const FENCE = 4;
export const SEALED = 'sealed';
/**
 * When the attempts that are found were claimed, and what was unknown before them. All differ, so
 * that none can stand for another.
 */
export const BEGAN = { record: NOW - 300, lock: NOW - 200 };
export const SINCE = { record: NOW - 600, lock: NOW - 500 };

/**
 * A record in words. `mine`: of the attempt that asks. `before`: something was unknown before it.
 */
export interface RecordCase {
  readonly state: 'none' | 'over' | 'running' | 'expired' | 'U' | 'D';
  readonly mine: boolean;
  readonly before: boolean;
}

/**
 * A lock in words. `off`: the operation has none. `before`: whose attempts were unknown before it,
 * or are in U.
 */
export interface LockCase {
  readonly state: 'off' | 'none' | 'over' | 'running' | 'expired' | 'U';
  readonly holder: 'mine' | 'this key' | 'another key';
  readonly before: 'none' | 'this key' | 'another key' | 'several';
}

const BOOLEANS = [true, false];

export const RECORDS: readonly RecordCase[] = (['none', 'over', 'running', 'expired', 'U', 'D'] as const).flatMap(
  (state) =>
    BOOLEANS.flatMap((mine) => BOOLEANS.map((before) => ({ state, mine, before }))).filter(
      ({ mine, before }) =>
        (state !== 'none' || (mine && !before)) && (state !== 'U' || before) && (state !== 'D' || !before),
    ),
);

export const LOCKS: readonly LockCase[] = (['off', 'none', 'over', 'running', 'expired', 'U'] as const).flatMap(
  (state) =>
    (['mine', 'this key', 'another key'] as const).flatMap((holder) =>
      (['none', 'this key', 'another key', 'several'] as const)
        .map((before) => ({ state, holder, before }))
        .filter(({ before }) => (state === 'U' ? before !== 'none' : true))
        .filter(({ before }) => (state === 'off' || state === 'none' ? holder === 'mine' && before === 'none' : true)),
    ),
);

const STATES = { over: 'P', running: 'P', expired: 'P', U: 'U', D: 'D' } as const;

function times(state: string): { readonly leaseUntil: number; readonly ends: number } {
  return { leaseUntil: state === 'running' ? NOW + 1 : NOW, ends: state === 'over' ? NOW : NOW + 1 };
}

export function standingOf(record: RecordCase, lock: LockCase): Standing {
  return { record: recordOf(record), lock: lockOf(lock) };
}

function recordOf({ state, mine, before }: RecordCase): ClaimRecord | undefined {
  if (state === 'none') return undefined;
  const open: OpenEnd | undefined = before ? { why: 'timeout', since: SINCE.record } : undefined;
  const answer = state === 'D' ? { status: 201, sealed: SEALED } : undefined;
  const attempt = { owner: mine ? ME : 'you', fence: FENCE, began: BEGAN.record, fingerprint: BODY };
  return { state: STATES[state], ...attempt, ...times(state), open, answer };
}

function lockOf({ state, holder, before }: LockCase): LockRecord | undefined {
  if (state === 'off' || state === 'none') return undefined;
  const name = holder === 'another key' ? OTHER_KEY : KEY;
  const attempt = { name, owner: holder === 'mine' ? ME : 'you', fence: FENCE, began: BEGAN.lock };
  return { state: STATES[state], ...attempt, ...times(state), open: beforeOf(before) };
}

function beforeOf(before: LockCase['before']): SessionEnd | undefined {
  const names = { 'this key': KEY, 'another key': OTHER_KEY, several: undefined };
  return before === 'none' ? undefined : { why: 'reset', since: SINCE.lock, name: names[before] };
}

/** Every record with every lock. */
export const CASES = RECORDS.flatMap((record) => LOCKS.map((lock) => ({ record, lock })));
