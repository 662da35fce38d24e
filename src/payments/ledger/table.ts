/**
 * The whole state machine of payments as a pure table: record and command in, answer and record
 * out. Each store makes it durable; the mandate uses of a payment change in the same writes.
 */

import type { MandateClaim, UseRefusal } from '../../mandates/register.ts';
import { readStoredMandate } from '../../mandates/stored-mandate.ts';
import {
  assertFacts,
  assertKeeping,
  assertLease,
  assertNewToken,
  assertPause,
  assertRecord,
  assertTerms,
  LedgerCorruption,
} from './invariants.ts';
import type {
  Advance,
  Advanced,
  Claim,
  Discarded,
  Holder,
  NewToken,
  Note,
  PaymentFacts,
  PaymentRecord,
  PaymentState,
  PaymentTerms,
  Reservation,
  Reserve,
} from './ledger.ts';
import { DELIVERING_STATES, isFinal, notableIn, OVER_STATES, sourcesOf } from './transitions.ts';

/** What a command does. `changed: false`: nothing is written and no event appended. */
export interface Outcome<Answer> {
  readonly answer: Answer;
  /** Afterwards; undefined when there is none. */
  readonly record: PaymentRecord | undefined;
  readonly changed: boolean;
}

/**
 * Claims an authorization, as `settling` where its proof was verified in time, or takes over one
 * whose lease ended. A take-over changes owner and fence, never the state: `settling` is uncertain
 * then and must be reconciled, `settled` and `undelivered` are deliveries to resume. The same owner
 * gets the same answer again, so a lost reply is harmless. `tokenShownFor`: the payId of the
 * payment that showed the command's token first.
 */
export function reserve(
  record: PaymentRecord | undefined,
  command: Reserve,
  now: number,
  tokenShownFor?: string,
): Outcome<Reservation> {
  assertLease(command.leaseMs);
  assertNewToken(command.token);
  assertLease(command.longestMs ?? 0);
  const terms = assertTerms(command.terms);
  if (record === undefined)
    return granted(freshRecord(withSecret(terms, command.token, tokenShownFor), command, now), terms);
  if (record.bind !== terms.bind) return unchanged({ kind: 'conflict', record });
  if (isFinal(record.state)) return unchanged({ kind: 'completed', record, endedMs: now - record.changedAt });
  if (!opens(record, terms)) return unchanged({ kind: 'guarded', record });
  const live = record.leaseUntil > now;
  const lease = { ...leased(now, command.leaseMs, 0), changedAt: now };
  if (record.owner === command.owner)
    return live ? unchanged({ kind: 'granted', record }) : granted({ ...record, ...lease }, record);
  if (live) return inFlight(record, now, command.longestMs);
  const tries = record.tries + (diedDelivering(record) ? 1 : 0);
  return granted({ ...record, ...lease, owner: command.owner, fence: record.fence + 1, tries }, record);
}

/**
 * Moves a record on. `tries` counts deliveries that failed: one for each change to `undelivered`,
 * and one for each take-over of a delivery whose lease ran out instead of being given up. A
 * question about a released record does not count, so that a caller who only replays a proof cannot
 * use the tries up.
 */
export function advance(record: PaymentRecord | undefined, command: Advance, now: number): Outcome<Advanced> {
  const { to, leaseMs, againMs = 0, facts = {} } = command;
  assertLease(leaseMs);
  assertPause(againMs);
  assertFacts(to, facts);
  assertKeeping(command.keeping);
  const learned = known(facts);
  return written(record, command, sourcesOf(to), (held) => ({
    ...held,
    ...learned,
    ...replaced({ ...held, ...learned }, FORGOTTEN_IN[to]),
    ...(isFinal(to) ? { leaseUntil: 0, dueAt: 0 } : leased(now, leaseMs, againMs)),
    state: to,
    tries: held.tries + (to === 'undelivered' ? 1 : 0),
    step: command.step,
    changedAt: now,
    ...(to === 'settled' ? { settledAt: now } : {}),
  }));
}

/** Records facts in place and renews the lease, or gives it up. */
export function note(record: PaymentRecord | undefined, command: Note, now: number): Outcome<Advanced> {
  const { leaseMs, againMs = 0, facts = {} } = command;
  assertLease(leaseMs);
  assertPause(againMs);
  assertFacts(undefined, facts);
  assertKeeping(command.keeping);
  return written(record, command, notableIn(facts), (held) => ({
    ...held,
    ...known(facts),
    ...(isFinal(held.state) ? { leaseUntil: 0, dueAt: 0 } : leased(now, leaseMs, againMs)),
    step: command.step,
    changedAt: now,
  }));
}

/**
 * Makes a running lease last longer. The step token stays, so that a write whose reply was lost is
 * still recognised; a lease that was given up stays so.
 */
export function renew(
  record: PaymentRecord | undefined,
  { leaseMs, ...claim }: Claim & { readonly leaseMs: number },
  now: number,
): Outcome<boolean> {
  assertLease(leaseMs);
  if (record === undefined || !holds(record, claim) || isFinal(record.state) || record.leaseUntil <= now)
    return { answer: false, record, changed: false };
  return { answer: true, record: assertRecord({ ...record, ...leased(now, leaseMs, 0) }, record), changed: true };
}

/** Deletes what is still `reserved`. A record that is gone already counts as deleted. */
export function discard(record: PaymentRecord | undefined, command: Holder): Outcome<Discarded> {
  const refused = refusal(record, command, ['reserved']);
  if (refused?.kind === 'lost') return { answer: { kind: 'gone' }, record: undefined, changed: false };
  if (refused !== undefined) return { answer: refused, record, changed: false };
  return { answer: { kind: 'gone' }, record: undefined, changed: true };
}

function written(
  record: PaymentRecord | undefined,
  command: Advance | Note,
  from: readonly PaymentState[],
  change: (held: PaymentRecord) => PaymentRecord,
): Outcome<Advanced> {
  // The owner is compared first: after a take-over the old owner gets "fenced" also for a command
  // that was applied.
  if (record !== undefined && holds(record, command) && record.step === command.step)
    return { answer: { kind: 'done', record }, record, changed: false };
  if (command.unchanged === true && record !== undefined && record.step !== command.seen?.step)
    return { answer: { kind: 'fenced' }, record, changed: false };
  const refused = refusal(record, command, from);
  if (refused !== undefined || record === undefined)
    return { answer: refused ?? { kind: 'lost' }, record, changed: false };
  const next = assertRecord(change(record), record);
  return { answer: { kind: 'done', record: next }, record: next, changed: true };
}

function refusal(
  record: PaymentRecord | undefined,
  command: Holder,
  from: readonly PaymentState[],
): Exclude<Advanced, { kind: 'done' }> | undefined {
  if (record === undefined) return { kind: 'lost' };
  if (!holds(record, command)) return { kind: 'fenced' };
  return from.includes(record.state) ? undefined : { kind: 'illegal', state: record.state };
}

function holds(record: PaymentRecord, { owner, fence }: Pick<Claim, 'owner' | 'fence'>): boolean {
  return record.owner === owner && record.fence === fence;
}

/** Whether terms bring the secret that a record was made with; one without a secret is open. */
export function opens(record: PaymentRecord, terms: Pick<PaymentTerms, 'keyDigest' | 'tokenDigest'>): boolean {
  if (record.keyDigest !== undefined) return record.keyDigest === terms.keyDigest;
  return record.tokenDigest === undefined || record.tokenDigest === terms.tokenDigest;
}

/**
 * Terms of a new record with one secret at most. A key counts alone, because its caller chose it. A
 * token that is worthless, or that another payment showed first, is no secret of this buyer.
 */
function withSecret(terms: PaymentTerms, token: NewToken | undefined, shownFor: string | undefined): PaymentTerms {
  const counts = token === undefined || (token.kind === 'issued' && (shownFor ?? terms.payId) === terms.payId);
  if (terms.tokenDigest === undefined || (counts && terms.keyDigest === undefined)) return terms;
  const { tokenDigest: _dropped, ...rest } = terms;
  return rest;
}

function freshRecord(terms: PaymentTerms, { owner, leaseMs, verified }: Reserve, now: number): PaymentRecord {
  return {
    ...terms,
    state: verified !== undefined && now < verified.untilMs ? 'settling' : 'reserved',
    owner,
    fence: 1,
    ...leased(now, leaseMs, 0),
    step: owner,
    tries: 0,
    reservedAt: now,
    changedAt: now,
  };
}

function diedDelivering(record: PaymentRecord): boolean {
  return record.leaseUntil !== 0 && DELIVERING_STATES.includes(record.state);
}

/** Useless in a final state, and by far the largest part: a stored body may have 256 KB. */
export const FORGOTTEN = { proof: '{}', backendRequest: '{}', rawTransaction: '0x' } as const;

/** The fields that a record forgets in a state. */
export const FORGOTTEN_IN: Readonly<Partial<Record<PaymentState, Readonly<Record<string, string>>>>> = {
  ...Object.fromEntries(OVER_STATES.map((state) => [state, FORGOTTEN])),
  // An operator may still decide that it was paid, and then it is delivered.
  unresolved: { rawTransaction: FORGOTTEN.rawTransaction },
  // A transaction that is not there cannot be sent by mistake.
  withdrawn: { rawTransaction: FORGOTTEN.rawTransaction },
};

function replaced(
  record: PaymentRecord,
  by: Readonly<Record<string, string>> | undefined = {},
): Partial<PaymentRecord> {
  return Object.fromEntries(Object.entries(by).filter(([name]) => record[name as keyof PaymentRecord] !== undefined));
}

/** A lease of 0 is none: then a reconciler may look as soon as the pause is over. */
function leased(now: number, leaseMs: number, againMs: number): Pick<PaymentRecord, 'leaseUntil' | 'dueAt'> {
  return { leaseUntil: leaseMs === 0 ? 0 : now + leaseMs, dueAt: now + leaseMs + againMs };
}

/** Facts are added, never taken away. */
function known(facts: PaymentFacts): PaymentFacts {
  const added: Record<string, unknown> = {};
  for (const [name, fact] of Object.entries(facts)) if (fact !== undefined) added[name] = fact;
  return added;
}

function granted(record: PaymentRecord, checked: Partial<PaymentRecord>): Outcome<Reservation> {
  const kept = assertRecord(record, checked);
  return { answer: { kind: 'granted', record: kept }, record: kept, changed: true };
}

/** A clock that went back must not lock a record for that time: such a lease begins again. */
function inFlight(record: PaymentRecord, now: number, longestMs: number | undefined): Outcome<Reservation> {
  const leaseLeftMs = record.leaseUntil - now;
  if (longestMs === undefined || leaseLeftMs <= longestMs) return unchanged({ kind: 'in_flight', record, leaseLeftMs });
  const cut = assertRecord({ ...record, ...leased(now, longestMs, 0) }, record);
  return { answer: { kind: 'in_flight', record: cut, leaseLeftMs: longestMs }, record: cut, changed: true };
}

function unchanged(answer: Exclude<Reservation, { kind: 'mandate' | 'refused' }>): Outcome<Reservation> {
  return { answer, record: answer.record, changed: false };
}

/** What becomes of mandate uses in a state (ap2 11); the other states keep them as they are. */
export const ENDS_USES: Readonly<Partial<Record<PaymentState, 'commit' | 'release'>>> = {
  settled: 'commit',
  refused: 'release',
};

/** The end of uses that were reserved. */
interface EndedUses {
  readonly claim: MandateClaim;
  readonly how: 'commit' | 'release';
}

/**
 * A reservation by the table. The mandate of a new record is reserved by `use` in the same write,
 * and without that use nothing is written. @throws LedgerCorruption
 */
export function admitted(
  outcome: Outcome<Reservation>,
  before: PaymentRecord | undefined,
  use: (claim: MandateClaim) => UseRefusal | undefined,
): Outcome<Reservation> {
  const { record } = outcome;
  if (before !== undefined || record?.mandate === undefined) return outcome;
  const reason = use(claimOf(record.mandate));
  return reason === undefined ? outcome : { answer: { kind: 'mandate', reason }, record: undefined, changed: false };
}

/** The uses that a write ends; a deleted record was a reservation. @throws LedgerCorruption */
export function endedUses(before: PaymentRecord | undefined, after: PaymentRecord | undefined): EndedUses | undefined {
  if (before?.mandate === undefined || before.state === after?.state) return undefined;
  const how = after === undefined ? 'release' : ENDS_USES[after.state];
  return how === undefined ? undefined : { claim: claimOf(before.mandate), how };
}

/** @throws LedgerCorruption */
export function claimOf(mandate: string): MandateClaim {
  const stored = readStoredMandate(mandate);
  if (stored === undefined) throw new LedgerCorruption('mandate is malformed');
  return stored.claim;
}
