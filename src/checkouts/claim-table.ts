import type { Claim, Claimed, Hold, SealedAnswer, Unknown, UnknownEnd } from './claims.ts';

/** An attempt whose end is unknown. `since`: when it was claimed last, milliseconds. */
export interface OpenEnd {
  readonly why: Unknown;
  readonly since: number;
}

/**
 * The youngest one on a session. `name`: the key that all of them belong to; undefined: several
 * keys.
 */
export interface SessionEnd extends OpenEnd {
  readonly name: string | undefined;
}

/** The last attempt. Times: milliseconds of the store's clock. */
interface Attempted<State, End> {
  /** P: it runs. U: nobody knows. D: it is done. */
  readonly state: State;
  readonly owner: string;
  readonly token: number;
  /** When it was claimed last: the merchant is called after that. */
  readonly began: number;
  /** How long it has, while it runs. */
  readonly leaseEnd: number;
  /** What is unknown: in P of attempts before it, in U of any. */
  readonly open: End | undefined;
  /** From then on there is no such record. */
  readonly ends: number;
}

/** One key (acp 12.3). */
export interface ClaimRecord extends Attempted<'P' | 'U' | 'D', OpenEnd> {
  readonly fingerprint: string;
  /** In D. */
  readonly answer: { readonly status: number; readonly sealed: string } | undefined;
}

/**
 * One session, held by the attempt of one key. There is none when nothing runs on it and every end
 * is known.
 */
export interface LockRecord extends Attempted<'P' | 'U', SessionEnd> {
  readonly name: string;
}

/** What stands of a key and of its session; no lock when the operation has none. */
export interface Standing {
  readonly record: ClaimRecord | undefined;
  readonly lock: LockRecord | undefined;
}

/** What is not over yet. */
function living<Kept extends ClaimRecord | LockRecord>(kept: Kept | undefined, now: number): Kept | undefined {
  return kept !== undefined && kept.ends > now ? kept : undefined;
}

/** Two ends of one session as one: the younger, and whether they belong to one key. */
function joined(one: SessionEnd | undefined, other: SessionEnd): SessionEnd {
  if (one === undefined) return other;
  const { why, since } = one.since > other.since ? one : other;
  return { why, since, name: one.name === other.name ? one.name : undefined };
}

/**
 * Of an attempt that the store knows nothing of any more: it counts as claimed now, and its lease
 * as over.
 */
function recordBegunBy({ fingerprint, owner, token }: Hold, now: number): ClaimRecord {
  return { ...begun, fingerprint, owner, token, began: now, leaseEnd: now, ends: now, answer: undefined };
}

/** Its session, which nobody else holds. */
function lockBegunBy({ name, owner, token }: Hold, now: number): LockRecord {
  return { ...begun, name, owner, token, began: now, leaseEnd: now, ends: now };
}

const begun = { state: 'P', open: undefined } as const;

/** `next` has the very objects that were found where nothing is to be written. */
export interface Outcome<Answer> {
  readonly answer: Answer;
  readonly next: Standing;
}

const REFUSED_FROM = 300;

/**
 * The table of claims (acp 12.4); `checkouts.lua` and the scripts that follow it are its twins. P:
 * an attempt runs, D: it is done, U: nobody knows. The first row that fits decides; what is over
 * (`ends`) is not there.
 *
 *     claim  record                                 lock                     answer         record   lock
 *       1    of another fingerprint                 any                      conflict       -        -
 *       2    D, but not the unopened one            any                      done           -        -
 *       3    P of another owner, lease running      any                      in_flight      -        -
 *       4    any                                    P of another attempt, lease running:
 *                                                     of this name           in_flight      -        -
 *                                                     of another name        session_busy   -        -
 *       5    P of this owner                        none asked, or its own   as before      P, the same token, a new lease (both)
 *       6    none                                   any                      first, again   P, 1     P
 *       7    U, P, or D that cannot be opened       any                      again          P, + 1   P
 *
 * Rows 5 to 7 answer `again` when the end of an attempt is unknown: of the key itself (a U; a P:
 * its lease ended, or another key took the session over; a D that cannot be opened), or of the
 * session (U; a P that is not this attempt: its lease ended). What was unknown before stays noted
 * beside P, for the key and for the session, until an end replaces it.
 *
 *     end       record of this owner and token                     lock that this attempt holds
 *     finish    P, U -> D; D stays: true                           goes; refused (300 and above) while an attempt of another key
 *                                                                    is unknown -> U
 *     unknown   P -> U; U stays: true; D: false                    P -> U
 *     release   P -> U as before it, else goes; U stays: true;     P -> U as before it, else goes
 *                 D: false
 *
 * No end touches the record or the lock of another attempt. A record that is not there was lost by
 * the store, for an attempt ends only once: finish and unknown write it as if it were P (unknown
 * also a lock that is not there), and release says true, as there is nothing to undo. Records live
 * until lease + keep of a claim (and never shorter than before it), until keep of an end; `release`
 * leaves that as it is.
 */
export function claimCheckout(found: Standing, claim: Claim, now: number): Outcome<Claimed> {
  const record = living(found.record, now);
  const lock = claim.lock === undefined ? undefined : living(found.lock, now);
  const hindrance = hindranceOf({ record, lock }, claim, now);
  if (hindrance !== undefined) return { answer: hindrance, next: found };
  const taken = takenRecord({ record, lock }, claim, now);
  if (claim.lock === undefined) return { answer: granted(taken, false, now), next: { ...found, record: taken } };
  const held = takenLock(lock, claim, taken);
  const other = held.open !== undefined && held.open.name !== claim.name;
  return { answer: granted(held, other, now), next: { record: taken, lock: held } };
}

/** It ended with this answer. False: it is not this attempt's any more. */
export function finishCheckout(found: Standing, hold: Hold, answer: SealedAnswer, now: number): Outcome<boolean> {
  const record = living(found.record, now) ?? recordBegunBy(hold, now);
  if (!isOf(record, hold)) return { answer: false, next: found };
  if (record.state === 'D') return { answer: true, next: found };
  const { status, sealed, keepMs } = answer;
  const lock = endedLock(found, hold, now, (held) => {
    const doubtful = isRefusal(status) && held.open !== undefined && held.open.name !== hold.name;
    return doubtful ? reopened(held) : undefined;
  });
  const done: ClaimRecord = {
    ...record,
    state: 'D',
    open: undefined,
    answer: { status, sealed },
    ends: now + keepMs,
  };
  return { answer: true, next: { record: done, lock } };
}

/** Nobody knows whether it happened. False: it is not this attempt's any more, or done. */
export function unknownCheckout(
  found: Standing,
  hold: Hold,
  { why, keepMs }: UnknownEnd,
  now: number,
): Outcome<boolean> {
  const kept = living(found.record, now);
  const record = kept ?? recordBegunBy(hold, now);
  if (!isOf(record, hold)) return { answer: false, next: found };
  if (record.state !== 'P') return { answer: record.state === 'U', next: found };
  const open = { why, since: record.began };
  const ends = now + keepMs;
  const doubted = (held: LockRecord): LockRecord => {
    return { ...held, state: 'U', open: joined(held.open, { ...open, name: hold.name }), ends };
  };
  const lost = kept === undefined && hold.lock !== undefined && living(found.lock, now) === undefined;
  const lock = lost ? doubted(lockBegunBy(hold, now)) : endedLock(found, hold, now, doubted);
  return { answer: true, next: { record: { ...record, state: 'U', open, ends }, lock } };
}

/**
 * It certainly did not happen in this attempt. False: it is not this attempt's any more, or done.
 */
export function releaseCheckout(found: Standing, hold: Hold, now: number): Outcome<boolean> {
  const record = living(found.record, now);
  if (record !== undefined && (!isOf(record, hold) || record.state === 'D')) return { answer: false, next: found };
  if (record?.state === 'U') return { answer: true, next: found };
  const lock = endedLock(found, hold, now, reopened);
  return { answer: true, next: { record: record && reopened(record), lock } };
}

/** Whether an answer of this status tells that the operation was refused. */
export function isRefusal(status: number): boolean {
  return status >= REFUSED_FROM;
}

/** Why it cannot be claimed: rows 1 to 4. */
function hindranceOf({ record, lock }: Standing, claim: Claim, now: number): Claimed | undefined {
  if (record !== undefined && record.fingerprint !== claim.fingerprint) return { kind: 'conflict' };
  if (record?.answer !== undefined && record.answer.sealed !== claim.unopened)
    return { kind: 'done', ...record.answer };
  if (record !== undefined && record.owner !== claim.owner && runs(record, now))
    return { kind: 'in_flight', ...spanOf(record, now) };
  if (lock === undefined || !runs(lock, now) || isHeldBy(lock, claim)) return undefined;
  return { kind: lock.name === claim.name ? 'in_flight' : 'session_busy', ...spanOf(lock, now) };
}

/** The attempt that begins, or goes on. */
function takenRecord({ record, lock }: Standing, claim: Claim, now: number): ClaimRecord {
  const { fingerprint, owner, leaseMs, keepMs } = claim;
  const leaseEnd = now + leaseMs;
  const ends = Math.max(record?.ends ?? 0, leaseEnd + keepMs);
  const begun = { state: 'P', fingerprint, owner, began: now, leaseEnd, ends, answer: undefined } as const;
  if (record === undefined) return { ...begun, token: 1, open: undefined };
  const { token, open } = record;
  const ours = claim.lock === undefined || (lock !== undefined && isHeldBy(lock, claim));
  if (record.state === 'P' && record.owner === owner && ours) return { ...begun, token, open };
  return { ...begun, token: token + 1, open: openEndOf(record) };
}

/** What was unknown on the session, of this key or of another one, is noted with it. */
function takenLock(lock: LockRecord | undefined, claim: Claim, record: ClaimRecord): LockRecord {
  const { owner, token, began, leaseEnd, open: own, ends } = record;
  const { name } = claim;
  const before = lock && (isHeldBy(lock, claim) ? lock.open : sessionEndOf(lock));
  const open = own === undefined ? before : joined(before, { ...own, name });
  return { state: 'P', name, owner, token, began, leaseEnd, open, ends: Math.max(lock?.ends ?? 0, ends) };
}

function granted({ token, open }: ClaimRecord | LockRecord, other: boolean, now: number): Claimed {
  if (open === undefined) return { kind: 'first', token };
  return { kind: 'again', token, why: open.why, sinceMs: Math.max(0, now - open.since), other };
}

/** What a new attempt has to know of the last one. */
function openEndOf({ state, began, open }: ClaimRecord): OpenEnd | undefined {
  if (state === 'U') return open;
  return { why: state === 'D' ? 'unopened' : 'lease_expired', since: began };
}

function sessionEndOf({ state, name, began, open }: LockRecord): SessionEnd | undefined {
  return state === 'U' ? open : joined(open, { why: 'lease_expired', since: began, name });
}

/** As it was before the attempt; nothing when nothing was unknown then. */
function reopened<Kept extends ClaimRecord | LockRecord>(kept: Kept): Kept | undefined {
  return kept.open === undefined ? undefined : { ...kept, state: 'U' };
}

/** The lock after an end of an attempt, which is nobody's business who does not hold it. */
function endedLock(
  { lock }: Standing,
  hold: Hold,
  now: number,
  end: (held: LockRecord) => LockRecord | undefined,
): LockRecord | undefined {
  const held = living(lock, now);
  return held !== undefined && held.name === hold.name && isOf(held, hold) ? end(held) : lock;
}

function isOf({ owner, token }: ClaimRecord | LockRecord, hold: Hold): boolean {
  return owner === hold.owner && token === hold.token;
}

function isHeldBy({ state, name, owner }: LockRecord, claim: Claim): boolean {
  return state === 'P' && name === claim.name && owner === claim.owner;
}

function runs({ state, leaseEnd }: ClaimRecord | LockRecord, now: number): boolean {
  return state === 'P' && leaseEnd > now;
}

function spanOf({ began, leaseEnd }: ClaimRecord | LockRecord, now: number) {
  return { ageMs: Math.max(0, now - began), leftMs: leaseEnd - now };
}
