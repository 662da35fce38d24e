/**
 * The claim machine of checkout operations as a pure table: record and command in, answer and
 * record out. `document-claims.ts` runs it over documents.
 */

/**
 * One attempt asks for one key. Names: base64url HMAC-SHA256, 43 characters, which reveal no
 * client, key or session (acp 12.1). Times: milliseconds of the store's own clock.
 */
export interface Claim {
  /** Of the key: client, operation, session and key. */
  readonly name: string;
  /** Of the session, for operations that exclude one another on it under any key (acp 12.7). */
  readonly lock: string | undefined;
  /** Keyed digest of the body's canonical form. */
  readonly fingerprint: string;
  /** Random, one for each attempt: a command that is repeated after a lost reply is known by it. */
  readonly owner: string;
  /** How long the attempt has, milliseconds. Afterwards another one may take over. */
  readonly leaseMs: number;
  /** How long the record lives beyond the lease, milliseconds. */
  readonly keepMs: number;
  /**
   * A sealed answer of this name that cannot be opened: while the record holds exactly this one, it
   * counts as an unknown end.
   */
  readonly unopened?: string;
}

/** Why the end of an attempt is unknown. */
export const UNKNOWNS = [
  'timeout',
  'reset',
  'status',
  'invalid_document',
  'lease_expired',
  'in_progress',
  'unopened',
  'unowned',
] as const;
export type Unknown = (typeof UNKNOWNS)[number];

/** The claim of an attempt that may call the backend; each of its ends carries it. */
export interface Hold {
  readonly name: string;
  readonly lock: string | undefined;
  /** For a store that lost its data meanwhile: an end still belongs to this body only. */
  readonly fingerprint: string;
  readonly owner: string;
  /** Fencing token: grows with every attempt of a name; older ones are refused (acp 12.6). */
  readonly fence: number;
}

/** An attempt that may have reached the backend, and whose end is unknown. */
export interface EarlierAttempt {
  readonly why: Unknown;
  /** Since it began, milliseconds; of several attempts, the last one. */
  readonly sinceMs: number;
  /** Whether one of them had another key: the backend cannot know that one by this key. */
  readonly otherKey: boolean;
}

/** The answer to a claim; the kinds are those of the payment ledger where both have them. */
export type Claimed =
  /** This attempt may call the backend. `earlier`: its end must be found out first. */
  | { readonly kind: 'granted'; readonly fence: number; readonly earlier?: EarlierAttempt }
  /** Nothing is left to do: the status and the sealed body are the answer. */
  | { readonly kind: 'completed'; readonly status: number; readonly sealed: string }
  /** An attempt of this key runs: since when, and how long its lease lasts. */
  | { readonly kind: 'in_flight'; readonly ageMs: number; readonly leaseLeftMs: number }
  /** An attempt of another key runs on the session. */
  | { readonly kind: 'session_busy'; readonly ageMs: number; readonly leaseLeftMs: number }
  /** The key belongs to another body. */
  | { readonly kind: 'conflict' };

/** A kept answer. `sealed`: printable ASCII. `keepMs`: how long from now on, milliseconds. */
export interface SealedAnswer {
  readonly status: number;
  readonly sealed: string;
  readonly keepMs: number;
}

/** An end that is unknown. `keepMs`: how long from now on it is remembered, milliseconds. */
export interface UnknownEnd {
  readonly why: Unknown;
  readonly keepMs: number;
}

/**
 * One session and one client. `session`, `owner`: base64url HMAC-SHA256, 43 characters; a client
 * has another owner name for each session, so the store does not show which sessions have one
 * owner.
 */
export interface Owning {
  readonly session: string;
  readonly owner: string;
  /** How long from now on it is remembered, milliseconds. */
  readonly keepMs: number;
}

/** Whose a session is, as one client sees it. */
export type Ownership = 'own' | 'other' | 'none';

/**
 * The claims of checkout operations (acp 12.4). Each command is one write, answers the same when it
 * is repeated after a lost reply, and no older fencing token can undo it. A store that lost its
 * data writes an end all the same, so the next attempt knows of the earlier one. Every command
 * throws StoreError when the store gives no answer, and RangeError for a bug of the caller.
 */
export interface CheckoutClaims {
  claim(claim: Claim): Promise<Claimed>;
  /** It ended with this answer. False: another attempt took over, and nothing was written. */
  finish(hold: Hold, answer: SealedAnswer): Promise<boolean>;
  /** It may have happened. False: another attempt took over. */
  unknown(hold: Hold, end: UnknownEnd): Promise<boolean>;
  /**
   * It certainly did not happen in this attempt. The record is deleted, unless an earlier attempt
   * may have reached the backend.
   */
  release(hold: Hold): Promise<boolean>;
  /** Writes whose a session is; the first owner stays. False: it is another client's. */
  own(owning: Owning): Promise<boolean>;
  /** Whose a session is. A question by the owner prolongs how long the owner is remembered. */
  ownership(owning: Owning): Promise<Ownership>;
}

/** The lowest status of a refusal. */
const REFUSED_FROM = 300;

/** An attempt whose end is unknown. `since`: when it was claimed last, milliseconds. */
export interface OpenEnd {
  readonly why: Unknown;
  readonly since: number;
}

/** The youngest open end of a session. `name`: the key of all open ends; undefined: several. */
export interface SessionEnd extends OpenEnd {
  readonly name: string | undefined;
}

/** The last attempt. Times: milliseconds of the store's clock. */
interface Attempted<State, End> {
  /** P: it runs. U: its end is unknown. D: it is done. */
  readonly state: State;
  readonly owner: string;
  /** Fencing token. */
  readonly fence: number;
  /** When it was claimed last: the backend is called after that. */
  readonly began: number;
  /** End of its lease, while it runs. */
  readonly leaseUntil: number;
  /** The unknown end: in P of earlier attempts, in U of any attempt. */
  readonly open: End | undefined;
  /** From then on the record does not count. */
  readonly ends: number;
}

/** One key (acp 12.3). */
export interface ClaimRecord extends Attempted<'P' | 'U' | 'D', OpenEnd> {
  readonly fingerprint: string;
  /** In D. */
  readonly answer: { readonly status: number; readonly sealed: string } | undefined;
}

/**
 * One session, held by the attempt of one key. There is none when nothing runs on the session and
 * every end is known.
 */
export interface LockRecord extends Attempted<'P' | 'U', SessionEnd> {
  readonly name: string;
}

/** The stored record of a key and lock of its session; no lock when the operation has none. */
export interface Standing {
  readonly record: ClaimRecord | undefined;
  readonly lock: LockRecord | undefined;
}

/** `next` holds the very objects that were found where nothing is to be written. */
export interface Outcome<Answer> {
  readonly answer: Answer;
  readonly next: Standing;
}

/**
 * The table of claims (acp 12.4). P: an attempt runs, D: it is done, U: its end is unknown. The
 * first row that fits decides; a record whose time is over (`ends`) counts as none.
 *
 *     claim  record                            lock                    answer        record   lock
 *       1    of another fingerprint            any                     conflict      -        -
 *       2    D, but not the unopened one       any                     completed     -        -
 *       3    P of another owner, lease runs    any                     in_flight     -        -
 *       4    any                               P of another attempt, lease runs:
 *                                                of this name          in_flight     -        -
 *                                                of another name       session_busy  -        -
 *       5    P of this owner                   none asked, or its own  granted       P, same  P
 *       6    none                              any                     granted       P, 1     P
 *       7    U, P, or D that cannot be opened  any                     granted       P, + 1   P
 *
 * Beside P stands the fencing token; each grant begins a new lease of key and session. A grant
 * names the earlier attempt when the end of one is unknown: of the key itself (a U; a P whose lease
 * ended, or whose session another key took over; a D that cannot be opened), or of the session (U;
 * a P of another attempt whose lease ended); in row 5 the one that it named before. An unknown end
 * stays noted beside P, for the key and for the session, until an end replaces it.
 *
 *     end      record of this owner and fence         lock that this attempt holds
 *     finish   P, U -> D; D stays: true               deleted; a refusal (300 and above) while the
 *                                                       end of another key is unknown -> U
 *     unknown  P -> U; U stays: true; D: false        P -> U
 *     release  P -> U as before it, else deleted;     P -> U as before it, else deleted
 *                U stays: true; D: false
 *
 * No end touches the record or the lock of another attempt. An attempt ends only once, so a missing
 * record was lost by the store: finish and unknown write it as if it were P (unknown writes a
 * missing lock too), and release answers true, as there is nothing to undo. Records live until
 * lease + keep of a claim (and never shorter than before it), until keep of an end; `release` does
 * not change that.
 */
export function claimCheckout(found: Standing, claim: Claim, now: number): Outcome<Claimed> {
  const record = living(found.record, now);
  const lock = claim.lock === undefined ? undefined : living(found.lock, now);
  const hindrance = hindranceOf({ record, lock }, claim, now);
  if (hindrance !== undefined) return { answer: hindrance, next: found };
  const taken = takenRecord({ record, lock }, claim, now);
  if (claim.lock === undefined) return { answer: granted(taken, false, now), next: { ...found, record: taken } };
  const held = takenLock(lock, claim, taken);
  const otherKey = held.open !== undefined && held.open.name !== claim.name;
  return { answer: granted(held, otherKey, now), next: { record: taken, lock: held } };
}

/** Ends an attempt with this answer. False: another attempt took over. */
export function finishCheckout(found: Standing, hold: Hold, answer: SealedAnswer, now: number): Outcome<boolean> {
  const record = living(found.record, now) ?? lostRecord(hold, now);
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

/** Notes the unknown end of an attempt. False: another took over, or the claim is done. */
export function unknownCheckout(
  found: Standing,
  hold: Hold,
  { why, keepMs }: UnknownEnd,
  now: number,
): Outcome<boolean> {
  const kept = living(found.record, now);
  const record = kept ?? lostRecord(hold, now);
  if (!isOf(record, hold)) return { answer: false, next: found };
  if (record.state !== 'P') return { answer: record.state === 'U', next: found };
  const open = { why, since: record.began };
  const ends = now + keepMs;
  const doubted = (held: LockRecord): LockRecord => {
    return { ...held, state: 'U', open: joined(held.open, { ...open, name: hold.name }), ends };
  };
  const lost = kept === undefined && hold.lock !== undefined && living(found.lock, now) === undefined;
  const lock = lost ? doubted(lostLock(hold, now)) : endedLock(found, hold, now, doubted);
  return { answer: true, next: { record: { ...record, state: 'U', open, ends }, lock } };
}

/** Ends an attempt that certainly did not happen. False: another took over, or it is done. */
export function releaseCheckout(found: Standing, hold: Hold, now: number): Outcome<boolean> {
  const record = living(found.record, now);
  if (record !== undefined && (!isOf(record, hold) || record.state === 'D')) return { answer: false, next: found };
  if (record?.state === 'U') return { answer: true, next: found };
  const lock = endedLock(found, hold, now, reopened);
  return { answer: true, next: { record: record && reopened(record), lock } };
}

/** Whether an answer of this status refuses the operation. */
export function isRefusal(status: number): boolean {
  return status >= REFUSED_FROM;
}

/** Why the claim is not granted: rows 1 to 4. */
function hindranceOf({ record, lock }: Standing, claim: Claim, now: number): Claimed | undefined {
  if (record !== undefined && record.fingerprint !== claim.fingerprint) return { kind: 'conflict' };
  if (record?.answer !== undefined && record.answer.sealed !== claim.unopened)
    return { kind: 'completed', ...record.answer };
  if (record !== undefined && record.owner !== claim.owner && runs(record, now))
    return { kind: 'in_flight', ...spanOf(record, now) };
  if (lock === undefined || !runs(lock, now) || isHeldBy(lock, claim)) return undefined;
  return { kind: lock.name === claim.name ? 'in_flight' : 'session_busy', ...spanOf(lock, now) };
}

/** The record of the attempt that begins, or goes on. */
function takenRecord({ record, lock }: Standing, claim: Claim, now: number): ClaimRecord {
  const { fingerprint, owner, leaseMs, keepMs } = claim;
  const leaseUntil = now + leaseMs;
  const ends = Math.max(record?.ends ?? 0, leaseUntil + keepMs);
  const begun = { state: 'P', fingerprint, owner, began: now, leaseUntil, ends, answer: undefined } as const;
  if (record === undefined) return { ...begun, fence: 1, open: undefined };
  const { fence, open } = record;
  const ours = claim.lock === undefined || (lock !== undefined && isHeldBy(lock, claim));
  if (record.state === 'P' && record.owner === owner && ours) return { ...begun, fence, open };
  return { ...begun, fence: fence + 1, open: openEndOf(record) };
}

/** The session of that attempt, with the unknown ends of this key and of others. */
function takenLock(lock: LockRecord | undefined, claim: Claim, record: ClaimRecord): LockRecord {
  const { owner, fence, began, leaseUntil, open: own, ends } = record;
  const { name } = claim;
  const before = lock && (isHeldBy(lock, claim) ? lock.open : sessionEndOf(lock));
  const open = own === undefined ? before : joined(before, { ...own, name });
  return { state: 'P', name, owner, fence, began, leaseUntil, open, ends: Math.max(lock?.ends ?? 0, ends) };
}

function granted({ fence, open }: ClaimRecord | LockRecord, otherKey: boolean, now: number): Claimed {
  if (open === undefined) return { kind: 'granted', fence };
  const { why, since } = open;
  return { kind: 'granted', fence, earlier: { why, sinceMs: Math.max(0, now - since), otherKey } };
}

/** The end of the last attempt, where it is unknown. */
function openEndOf({ state, began, open }: ClaimRecord): OpenEnd | undefined {
  if (state === 'U') return open;
  return { why: state === 'D' ? 'unopened' : 'lease_expired', since: began };
}

function sessionEndOf({ state, name, began, open }: LockRecord): SessionEnd | undefined {
  return state === 'U' ? open : joined(open, { why: 'lease_expired', since: began, name });
}

/** The state before the attempt; undefined when every end was known then. */
function reopened<Kept extends ClaimRecord | LockRecord>(kept: Kept): Kept | undefined {
  return kept.open === undefined ? undefined : { ...kept, state: 'U' };
}

/** The lock after an end of an attempt; only the attempt that holds it changes it. */
function endedLock(
  { lock }: Standing,
  hold: Hold,
  now: number,
  end: (held: LockRecord) => LockRecord | undefined,
): LockRecord | undefined {
  const held = living(lock, now);
  return held !== undefined && held.name === hold.name && isOf(held, hold) ? end(held) : lock;
}

function isOf({ owner, fence }: ClaimRecord | LockRecord, hold: Hold): boolean {
  return owner === hold.owner && fence === hold.fence;
}

function isHeldBy({ state, name, owner }: LockRecord, claim: Claim): boolean {
  return state === 'P' && name === claim.name && owner === claim.owner;
}

function runs({ state, leaseUntil }: ClaimRecord | LockRecord, now: number): boolean {
  return state === 'P' && leaseUntil > now;
}

function spanOf({ began, leaseUntil }: ClaimRecord | LockRecord, now: number) {
  return { ageMs: Math.max(0, now - began), leaseLeftMs: leaseUntil - now };
}

/** Undefined when its time is over. */
function living<Kept extends ClaimRecord | LockRecord>(kept: Kept | undefined, now: number): Kept | undefined {
  return kept !== undefined && kept.ends > now ? kept : undefined;
}

/** Two open ends of one session as one: the younger, and whether they belong to one key. */
function joined(one: SessionEnd | undefined, other: SessionEnd): SessionEnd {
  if (one === undefined) return other;
  const { why, since } = one.since > other.since ? one : other;
  return { why, since, name: one.name === other.name ? one.name : undefined };
}

/** The record of an attempt that the store lost: claimed now, with a lease that is over. */
function lostRecord({ fingerprint, owner, fence }: Hold, now: number): ClaimRecord {
  const times = { began: now, leaseUntil: now, ends: now };
  return { state: 'P', fingerprint, owner, fence, ...times, open: undefined, answer: undefined };
}

/** The lock of an attempt that the store lost, when no other attempt holds the session. */
function lostLock({ name, owner, fence }: Hold, now: number): LockRecord {
  return { state: 'P', name, owner, fence, began: now, leaseUntil: now, ends: now, open: undefined };
}
