import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  claimCheckout,
  finishCheckout,
  type Outcome,
  releaseCheckout,
  type Standing,
  unknownCheckout,
} from '../../src/checkouts/claim-table.ts';
import type { Claim, Claimed, Hold } from '../../src/checkouts/claims.ts';
import {
  BEGAN,
  BODY,
  CASES,
  FENCE,
  KEY,
  type LockCase,
  ME,
  NOW,
  type RecordCase,
  SEALED,
  SINCE,
  standingOf,
} from './claim-cases.ts';

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
