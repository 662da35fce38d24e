import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Claim,
  type Claimed,
  type ClaimRecord,
  claimCheckout,
  finishCheckout,
  type Hold,
  type LockRecord,
  type OpenEnd,
  type Outcome,
  releaseCheckout,
  type SessionEnd,
  type Standing,
  unknownCheckout,
} from '../../src/checkouts/claim-table.ts';

/** The store's clock, milliseconds. */
const NOW = 1_000_000;
const KEY = 'this key';
const OTHER_KEY = 'another key';
const ME = 'me';
const BODY = 'body';
/** The fence of every attempt that is found. */
const FENCE = 4;
const SEALED = 'sealed';
/**
 * When the attempts that are found were claimed, and what was unknown before them. All differ, so
 * that none can stand for another.
 */
const BEGAN = { record: NOW - 300, lock: NOW - 200 };
const SINCE = { record: NOW - 600, lock: NOW - 500 };

/**
 * A record in words. `mine`: of the attempt that asks. `before`: something was unknown before it.
 */
interface RecordCase {
  readonly state: 'none' | 'over' | 'running' | 'expired' | 'U' | 'D';
  readonly mine: boolean;
  readonly before: boolean;
}

/**
 * A lock in words. `off`: the operation has none. `before`: whose attempts were unknown before it,
 * or are in U.
 */
interface LockCase {
  readonly state: 'off' | 'none' | 'over' | 'running' | 'expired' | 'U';
  readonly holder: 'mine' | 'this key' | 'another key';
  readonly before: 'none' | 'this key' | 'another key' | 'several';
}

const BOOLEANS = [true, false];

const RECORDS: readonly RecordCase[] = (['none', 'over', 'running', 'expired', 'U', 'D'] as const).flatMap((state) =>
  BOOLEANS.flatMap((mine) => BOOLEANS.map((before) => ({ state, mine, before }))).filter(
    ({ mine, before }) =>
      (state !== 'none' || (mine && !before)) && (state !== 'U' || before) && (state !== 'D' || !before),
  ),
);

const LOCKS: readonly LockCase[] = (['off', 'none', 'over', 'running', 'expired', 'U'] as const).flatMap((state) =>
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

function standingOf(record: RecordCase, lock: LockCase): Standing {
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
const CASES = RECORDS.flatMap((record) => LOCKS.map((lock) => ({ record, lock })));

const LEASE_MS = 10;
const KEEP_MS = 100;
const claim: Claim = { name: KEY, lock: 'session', fingerprint: BODY, owner: ME, leaseMs: LEASE_MS, keepMs: KEEP_MS };
const hold: Hold = { name: KEY, lock: 'session', fingerprint: BODY, owner: ME, fence: FENCE };
const kept = (status: number) => ({ status, sealed: 'new', keepMs: KEEP_MS });

const CLAIMS: Readonly<Record<string, Claim>> = {
  claim,
  'claim of another body': { ...claim, fingerprint: 'other' },
  'claim that cannot open the answer': { ...claim, unopened: SEALED },
  'claim that cannot open an older answer': { ...claim, unopened: 'older' },
};
const ENDS: Readonly<Record<string, (found: Standing, by: Hold) => Outcome<boolean>>> = {
  'finish 200': (found, by) => finishCheckout(found, by, kept(200), NOW),
  'finish 300': (found, by) => finishCheckout(found, by, kept(300), NOW),
  unknown: (found, by) => unknownCheckout(found, by, { why: 'status', keepMs: KEEP_MS }, NOW),
  release: (found, by) => releaseCheckout(found, by, NOW),
};

const text = (value: unknown): string => JSON.stringify(value);
const gone = ({ state }: RecordCase | LockCase) => state === 'none' || state === 'over' || state === 'off';
const off = ({ state }: LockCase) => state === 'off';
const ours = (lock: LockCase) => lock.holder === 'mine' && (lock.state === 'running' || lock.state === 'expired');

/** The answer in words: the rule of each row, without the arithmetic. */
function expectedOf(record: RecordCase, lock: LockCase, how: string): string {
  if (!gone(record)) {
    if (how === 'claim of another body') return 'conflict';
    if (record.state === 'D' && how !== 'claim that cannot open the answer') return 'completed';
    if (record.state === 'running' && !record.mine) return 'in_flight';
  }
  if (lock.state === 'running' && lock.holder !== 'mine')
    return lock.holder === 'this key' ? 'in_flight' : 'session_busy';
  const goesOn = ['running', 'expired'].includes(record.state) && record.mine && (off(lock) || ours(lock));
  const fence = gone(record) ? 1 : goesOn ? FENCE : FENCE + 1;
  const doubts = [...doubtsOfKey(record, goesOn), ...doubtsOfSession(lock)];
  const youngest = doubts.toSorted((a, b) => b.since - a.since)[0];
  if (youngest === undefined) return `granted ${fence}`;
  const otherKey = !off(lock) && doubts.some(({ of }) => of !== 'this key');
  return `granted ${fence} after ${youngest.why} ${NOW - youngest.since}${otherKey ? ' of another key' : ''}`;
}

interface Doubt {
  readonly why: string;
  readonly since: number;
  readonly of: string;
}

function doubtsOfKey(record: RecordCase, goesOn: boolean): readonly Doubt[] {
  const of = 'this key';
  if (gone(record)) return [];
  if (record.state === 'D') return [{ why: 'unopened', since: BEGAN.record, of }];
  if (record.state === 'U' || goesOn) return record.before ? [{ why: 'timeout', since: SINCE.record, of }] : [];
  return [{ why: 'lease_expired', since: BEGAN.record, of }];
}

function doubtsOfSession(lock: LockCase): readonly Doubt[] {
  if (gone(lock)) return [];
  const before = lock.before === 'none' ? [] : [{ why: 'reset', since: SINCE.lock, of: lock.before }];
  if (lock.state === 'U' || ours(lock)) return before;
  const of = lock.holder === 'another key' ? 'another key' : 'this key';
  return [...before, { why: 'lease_expired', since: BEGAN.lock, of }];
}

function wordsOf(answer: Claimed): string {
  if (answer.kind !== 'granted') return answer.kind;
  const { fence, earlier } = answer;
  if (earlier === undefined) return `granted ${fence}`;
  return `granted ${fence} after ${earlier.why} ${earlier.sinceMs}${earlier.otherKey ? ' of another key' : ''}`;
}

/** Every record with every lock and every claim; without a lock the claim asks for none. */
function* everyClaim() {
  for (const { record, lock } of CASES)
    for (const [how, one] of Object.entries(CLAIMS)) {
      const found = standingOf(record, lock);
      const asked = off(lock) ? { ...one, lock: undefined } : one;
      yield {
        record,
        lock,
        how,
        found,
        asked,
        outcome: claimCheckout(found, asked, NOW),
        what: text({ record, lock, how }),
      };
    }
}

describe('the table of claims', () => {
  it('answers every claim on every record and every lock by its row', () => {
    const seen = new Set<string>();
    for (const { record, lock, how, outcome, what } of everyClaim()) {
      assert.equal(wordsOf(outcome.answer), expectedOf(record, lock, how), what);
      seen.add(`${outcome.answer.kind}${'earlier' in outcome.answer ? ' after' : ''}`);
    }
    assert.equal(seen.size, 6);
  });

  it('writes nothing for a claim that is not granted, and the attempt on key and session for one that is', () => {
    for (const { lock, found, asked, outcome, what } of everyClaim()) {
      const { answer, next } = outcome;
      if (!('fence' in answer)) {
        assert.equal(next, found, what);
        continue;
      }
      const { fence } = answer;
      const attempt = {
        state: 'P',
        owner: ME,
        fence,
        began: NOW,
        leaseUntil: NOW + LEASE_MS,
        ends: NOW + LEASE_MS + KEEP_MS,
      };
      assert.partialDeepStrictEqual(next.record, { ...attempt, fingerprint: asked.fingerprint }, what);
      assert.equal(next.record?.answer, undefined, what);
      if (off(lock)) assert.equal(next.lock, found.lock, what);
      else assert.partialDeepStrictEqual(next.lock, { ...attempt, name: KEY }, what);
    }
  });

  it('answers in flight with the age of the attempt and the rest of its lease', () => {
    for (const { record, outcome, what } of everyClaim()) {
      const { answer } = outcome;
      if (answer.kind !== 'in_flight' && answer.kind !== 'session_busy') continue;
      const began = record.state === 'running' && !record.mine ? BEGAN.record : BEGAN.lock;
      assert.deepEqual(answer, { kind: answer.kind, ageMs: NOW - began, leaseLeftMs: 1 }, what);
    }
  });

  it('never shortens a record by a claim, nor makes an age negative when the clock was set back', () => {
    const U = { state: 'U', mine: false, before: true } as const;
    const found = standingOf(U, { state: 'U', holder: 'another key', before: 'another key' });
    const ends = NOW + 10 * KEEP_MS;
    const long = { record: { ...found.record, ends }, lock: { ...found.lock, ends } } as Standing;
    const { next } = claimCheckout(long, claim, NOW);
    assert.deepEqual([next.record?.ends, next.lock?.ends], [ends, ends]);
    assert.equal(claimCheckout({ ...long, record: undefined }, claim, NOW).next.lock?.ends, ends);
    assert.partialDeepStrictEqual(claimCheckout(long, claim, SINCE.lock - 1).answer, {
      kind: 'granted',
      earlier: { sinceMs: 0 },
    });
  });

  it('answers a repeated command the same, and changes nothing by it', () => {
    for (const { asked, outcome, what } of everyClaim())
      if ('fence' in outcome.answer) assert.deepEqual(claimCheckout(outcome.next, asked, NOW), outcome, what);
    for (const { record, lock } of CASES)
      for (const [how, end] of Object.entries(ENDS)) {
        const once = end(standingOf(record, lock), hold);
        assert.deepEqual(end(once.next, hold), once, text({ record, lock, how }));
      }
  });

  it('lets no attempt end what is not of its owner and fencing token', () => {
    for (const { record, lock } of CASES)
      for (const [how, end] of Object.entries(ENDS))
        for (const by of [{ owner: 'another' }, { fence: FENCE - 1 }, { fence: FENCE + 1 }]) {
          // A lost record has no other owner.
          if (gone(record)) continue;
          const found = standingOf(record, lock);
          const { answer, next } = end(found, { ...hold, ...by });
          assert.equal(answer, false, text({ record, lock, how, by }));
          assert.equal(next, found, text({ record, lock, how, by }));
        }
  });

  it('does not take an owner for the holder of a session that it holds by another key', () => {
    const record = { state: 'running', mine: true, before: false } as const;
    const found = standingOf(record, { state: 'running', holder: 'another key', before: 'none' });
    const lock = { ...found.lock, owner: ME } as Standing['lock'];
    assert.equal(claimCheckout({ record: undefined, lock }, claim, NOW).answer.kind, 'session_busy');
    for (const end of Object.values(ENDS)) assert.equal(end({ ...found, lock }, hold).next.lock, lock);
  });

  it('ends an attempt by its row, and the lock only when the attempt holds it', () => {
    for (const { record, lock } of CASES)
      for (const [how, end] of Object.entries(ENDS)) {
        const found = standingOf(record, lock);
        const { answer, next } = end(found, off(lock) ? { ...hold, lock: undefined } : hold);
        const what = text({ record, lock, how });
        const [state, accepted] = endOf(record, how);
        assert.equal(answer, accepted, what);
        assert.equal(next.record?.state ?? 'none', state, what);
        const stays = record.state === 'D' || (record.state === 'U' && !how.startsWith('finish'));
        const holds = lock.holder === 'mine' && !gone(lock);
        if (gone(record) && how === 'unknown' && gone(lock) && !off(lock)) assert.equal(next.lock?.state, 'U', what);
        else if (accepted && !stays && holds) assert.equal(next.lock?.state ?? 'none', lockEndOf(lock, how), what);
        else assert.equal(next.lock, found.lock, what);
      }
  });

  it('writes the end of an attempt that the store lost, with its key and session', () => {
    const nothing: Standing = { record: undefined, lock: undefined };
    const attempt = { fingerprint: BODY, owner: ME, fence: FENCE, began: NOW, ends: NOW + KEEP_MS };
    const finished = finishCheckout(nothing, hold, kept(200), NOW).next;
    assert.partialDeepStrictEqual(finished.record, { ...attempt, answer: { status: 200, sealed: 'new' } });
    assert.equal(finished.lock, undefined);
    const { record, lock } = unknownCheckout(nothing, hold, { why: 'status', keepMs: KEEP_MS }, NOW).next;
    const open = { why: 'status', since: NOW } as const;
    assert.partialDeepStrictEqual(record, { ...attempt, open });
    const { fingerprint: _, ...held } = attempt;
    assert.partialDeepStrictEqual(lock, { ...held, name: KEY, open: { ...open, name: KEY } });
  });

  it('notes the begin of the attempt with an unknown end, and restores the earlier end with a release', () => {
    const record = { state: 'running', mine: true, before: true } as const;
    const lock = { state: 'running', holder: 'mine', before: 'another key' } as const;
    const found = standingOf(record, lock);
    const doubted = ENDS['unknown']?.(found, hold).next;
    assert.deepEqual(doubted?.record?.open, { why: 'status', since: BEGAN.record });
    assert.deepEqual(doubted?.lock?.open, { why: 'status', since: BEGAN.record, name: undefined });
    assert.deepEqual([doubted?.record?.ends, doubted?.lock?.ends], [NOW + KEEP_MS, NOW + KEEP_MS]);
    const released = ENDS['release']?.(found, hold).next;
    assert.deepEqual([released?.record?.open, released?.lock?.open], [found.record?.open, found.lock?.open]);
    const finished = ENDS['finish 200']?.(found, hold).next.record;
    assert.partialDeepStrictEqual(finished, { answer: { status: 200, sealed: 'new' }, ends: NOW + KEEP_MS });
  });
});

/**
 * The state of the record after an end of its own attempt, and the answer; expired ones end like
 * running ones.
 */
function endOf({ state, mine, before }: RecordCase, how: string): readonly [string, boolean] {
  const release = how === 'release';
  if (state === 'none' || state === 'over') return [release ? 'none' : how === 'unknown' ? 'U' : 'D', true];
  if (!mine) return [state === 'U' || state === 'D' ? state : 'P', false];
  if (state === 'D') return ['D', how.startsWith('finish')];
  if (how.startsWith('finish')) return ['D', true];
  if (state === 'U' || how === 'unknown') return ['U', true];
  return [before ? 'U' : 'none', true];
}

/** The state of the lock after an end of the attempt that holds it. */
function lockEndOf({ before }: LockCase, how: string): string {
  if (how === 'unknown') return 'U';
  if (how === 'release') return before === 'none' ? 'none' : 'U';
  return how === 'finish 300' && (before === 'another key' || before === 'several') ? 'U' : 'none';
}
