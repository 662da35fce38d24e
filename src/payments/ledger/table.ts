/**
 * The whole state machine of payments as a pure table: which state follows which (contract 4.3),
 * what a command makes of a record, and the rules that each record keeps. The stores make it
 * durable; the mandate uses of a payment change in the same writes.
 */

import type { MandateClaim, UseRefusal } from '../../mandates/register.ts';
import { readStoredMandate } from '../../mandates/stored-mandate.ts';
import { RECEIPT_ID } from '../../receipts/receipt.ts';
import {
  type Advance,
  type Advanced,
  type Claim,
  type Discarded,
  type Evidence,
  type Holder,
  type Keeping,
  MAX_KEPT_BYTES,
  MAX_STORED_ANSWER_BYTES,
  type NewToken,
  type Note,
  type PaymentFacts,
  type PaymentRecord,
  type PaymentState,
  type PaymentTerms,
  type Reservation,
  type Reserve,
  SEALED_ANSWER,
} from './ledger.ts';

const HOUR_MS = 60 * 60 * 1_000;
/** How long a settled call can be collected with the same proof, milliseconds (contract 4.3). */
export const RETRY_WINDOW_MS = 24 * HOUR_MS;
/** The retry window and one hour on top (contract 4.3), milliseconds. */
export const RECORD_RETENTION_MS = RETRY_WINDOW_MS + HOUR_MS;

/** What waits for an operator is kept "for ever", milliseconds: ten years. */
const OPERATOR_RETENTION_MS = 10 * 365 * 24 * HOUR_MS;

/** How long a record is kept after its window or its last change, the later one, milliseconds. */
function retentionOf(state: PaymentState): number {
  return OPERATOR_STATES.includes(state) ? OPERATOR_RETENTION_MS : RECORD_RETENTION_MS;
}

/** When a record may be deleted, milliseconds of the store's clock: later with each change. */
export function expiresAt(record: PaymentRecord): number {
  return Math.max(record.validBefore * 1_000, record.changedAt) + retentionOf(record.state);
}

/** The whole state machine: no other change of state can happen. */
export const TRANSITIONS: Readonly<Record<PaymentState, readonly PaymentState[]>> = {
  reserved: ['worked', 'settling'],
  worked: ['settling', 'refused'],
  settling: ['settled', 'refused', 'withdrawn', 'unresolved'],
  unresolved: ['settled', 'refused'],
  withdrawn: ['settling'],
  settled: ['delivered', 'undelivered'],
  undelivered: ['delivered', 'undelivered', 'refundDue'],
  delivered: [],
  refused: [],
  refundDue: ['refunding', 'refunded'],
  // Signed again: an earlier transaction may have been dropped.
  refunding: ['refunding', 'refunded'],
  refunded: [],
};

const STATES = Object.keys(TRANSITIONS) as PaymentState[];

/** States from which only an operator leads on. */
const OPERATOR_STATES: readonly PaymentState[] = ['unresolved', 'refundDue', 'refunding'];

/** Final states but `unresolved`, from which an operator may still lead to a delivery. */
export const OVER_STATES: readonly PaymentState[] = STATES.filter((state) => isFinal(state) && state !== 'unresolved');

/** States that still want work; each of them can be taken over. */
const OPEN_STATES: readonly PaymentState[] = STATES.filter((state) => !isFinal(state));

/** Money moved and nothing was delivered: a lease that runs out here is a delivery that died. */
export const DELIVERING_STATES: readonly PaymentState[] = ['settled', 'undelivered'];

/** The states that lead to a state. */
function sourcesOf(to: PaymentState): readonly PaymentState[] {
  return STATES.filter((from) => TRANSITIONS[from].includes(to));
}

/** Whether no call and no reconciler goes on from here. */
export function isFinal(state: PaymentState): boolean {
  return OPERATOR_STATES.includes(state) || TRANSITIONS[state].length === 0;
}

/** Nothing is under way in these states, so nothing is signed. */
const IDLE_STATES: readonly PaymentState[] = ['reserved', 'worked', 'withdrawn'];

/**
 * The states in which facts may be noted; a final state takes `bought` alone. A `reserved` record
 * may be deleted, so it must have no transaction.
 */
function notableIn(facts: PaymentFacts): readonly PaymentState[] {
  if (facts.bought !== undefined) return ['refused'];
  const proves = facts.transaction !== undefined || facts.rawTransaction !== undefined;
  return proves ? OPEN_STATES.filter((state) => !IDLE_STATES.includes(state)) : OPEN_STATES;
}

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
  assertSpan('lease', command.leaseMs);
  assertNewToken(command.token);
  assertSpan('lease', command.longestMs ?? 0);
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
 * take-over after the lease was given up does not count, so that a caller who only replays a proof
 * cannot use up the tries.
 */
export function advance(record: PaymentRecord | undefined, command: Advance, now: number): Outcome<Advanced> {
  const { to, leaseMs, againMs = 0, facts = {} } = command;
  assertSpan('lease', leaseMs);
  assertSpan('pause', againMs);
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
  assertSpan('lease', leaseMs);
  assertSpan('pause', againMs);
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
  assertSpan('lease', leaseMs);
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

/** Replaces fields that are useless when a record is over, its largest: a body may have 256 KB. */
export const FORGOTTEN = { proof: '{}', backendRequest: '{}', rawTransaction: '0x' } as const;

/** The fields that a record forgets in a state, with the values that replace them. */
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

/** Cuts a lease to `longestMs`: a clock that went back must not lock a record for that time. */
function inFlight(record: PaymentRecord, now: number, longestMs: number | undefined): Outcome<Reservation> {
  const leaseLeftMs = record.leaseUntil - now;
  if (longestMs === undefined || leaseLeftMs <= longestMs) return unchanged({ kind: 'in_flight', record, leaseLeftMs });
  const cut = assertRecord({ ...record, ...leased(now, longestMs, 0) }, record);
  return { answer: { kind: 'in_flight', record: cut, leaseLeftMs: longestMs }, record: cut, changed: true };
}

function unchanged(answer: Exclude<Reservation, { kind: 'mandate' | 'refused' }>): Outcome<Reservation> {
  return { answer, record: answer.record, changed: false };
}

/** The end of mandate uses in a state (ap2 11); the other states keep them as they are. */
export const ENDS_USES: Readonly<Partial<Record<PaymentState, 'commit' | 'release'>>> = {
  settled: 'commit',
  refused: 'release',
};

/**
 * A reservation by the table. No new record is made when the provider `refused` this proof before,
 * or its mandate cannot be used; `use` reserves that in the same write.
 * @throws LedgerCorruption
 */
export function admitted(
  outcome: Outcome<Reservation>,
  before: PaymentRecord | undefined,
  refused: string | undefined,
  use: (claim: MandateClaim) => UseRefusal | undefined,
): Outcome<Reservation> {
  const { record } = outcome;
  if (before !== undefined || record === undefined) return outcome;
  if (refused !== undefined) return { answer: { kind: 'refused', reason: refused }, record: undefined, changed: false };
  const reason = record.mandate === undefined ? undefined : use(claimOf(record.mandate));
  return reason === undefined ? outcome : { answer: { kind: 'mandate', reason }, record: undefined, changed: false };
}

/** @throws LedgerCorruption */
export function claimOf(mandate: string): MandateClaim {
  const stored = readStoredMandate(mandate);
  if (stored === undefined) throw new LedgerCorruption('mandate is malformed');
  return stored.claim;
}

/** Longest lease, milliseconds: a wrong deadline must not lock a buyer out for hours. */
export const MAX_LEASE_MS = 600_000;
/** Longest pause of a reconciler, milliseconds. */
export const MAX_PAUSE_MS = 48 * 60 * 60 * 1_000;

const SHA256_HEX = /^[0-9a-f]{64}$/;
const DIGITS = /^\d{1,78}$/;
const CHANNELS: ReadonlySet<unknown> = new Set(['http', 'mcp', 'a2a', 'acp', 'origin']);
/** A record breaks a rule: a bug or a damaged store, never the buyer's fault. */
export class LedgerCorruption extends Error {
  readonly rule: string;

  /** @param rule what is broken; names fields, never their contents. `key`: of the document */
  constructor(rule: string, key?: string) {
    super(`payment record${key === undefined ? '' : ` ${key}`}: ${rule}`);
    this.name = 'LedgerCorruption';
    this.rule = rule;
  }
}

const PAID: ReadonlySet<unknown> = new Set<Evidence>(['logs', 'claim', 'operator']);
const WORTHLESS: ReadonlySet<unknown> = new Set<Evidence>(['expired', 'elsewhere', 'unsent', 'unclaimed', 'operator']);
/** Evidence that must name a transaction. */
const NEEDS_TRANSACTION: ReadonlySet<unknown> = new Set<Evidence>(['logs', 'claim']);

type Rule = (value: unknown) => boolean;

const text: Rule = (value) => typeof value === 'string' && value.length > 0;
const optionalText: Rule = (value) => value === undefined || text(value);
const count: Rule = (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
const positive: Rule = (value) => count(value) && value !== 0;
const like =
  (pattern: RegExp): Rule =>
  (value) =>
    typeof value === 'string' && pattern.test(value);
const digest = like(SHA256_HEX);
const optionalCount: Rule = (value) => value === undefined || count(value);
const optionalDigest: Rule = (value) => value === undefined || digest(value);

const TERMS: Readonly<Record<keyof PaymentTerms, Rule>> = {
  payId: digest,
  bind: digest,
  requestId: text,
  callId: text,
  resourceId: text,
  channel: (value) => CHANNELS.has(value),
  // Receipts are ordered by this id, so its shape matters.
  receiptId: like(RECEIPT_ID),
  payer: text,
  payee: text,
  asset: text,
  network: text,
  units: like(DIGITS),
  amount: text,
  currency: text,
  nonce: text,
  validBefore: positive,
  proof: text,
  backendRequest: text,
  keyDigest: optionalDigest,
  tokenDigest: optionalDigest,
  proofDigest: text,
  mandate: (value) => value === undefined || (typeof value === 'string' && readStoredMandate(value) !== undefined),
  settle: (value) => value === undefined || value === 'after',
};

const RECORD: Readonly<Record<keyof PaymentRecord, Rule>> = {
  ...TERMS,
  state: (value) => typeof value === 'string' && Object.hasOwn(TRANSITIONS, value),
  owner: text,
  fence: positive,
  leaseUntil: count,
  dueAt: count,
  step: text,
  tries: count,
  reservedAt: positive,
  changedAt: positive,
  settledAt: (value) => value === undefined || positive(value),
  transaction: optionalText,
  rawTransaction: optionalText,
  reason: optionalText,
  evidence: (value) => value === undefined || PAID.has(value) || WORTHLESS.has(value),
  recovered: (value) => value === undefined || value === 'chain',
  sending: (value) => value === undefined || value === 'begun' || value === 'ended',
  sendings: optionalCount,
  sentBytes: optionalCount,
  ofBytes: optionalCount,
  refundTransaction: optionalText,
  answered: (value) => value === undefined || positive(value),
  bought: optionalDigest,
};

const TERM_RULES = Object.entries(TERMS);
const RECORD_RULES = Object.entries(RECORD) as readonly (readonly [keyof PaymentRecord, Rule])[];

/** The fields that a state of a paid payment requires. */
const OF_PAID = ['evidence', 'settledAt'] as const;

/** The fields that a state requires. */
export const REQUIRED: Readonly<Record<PaymentState, readonly (keyof PaymentRecord)[]>> = {
  reserved: [],
  worked: ['answered'],
  settling: [],
  withdrawn: ['reason'],
  settled: OF_PAID,
  delivered: OF_PAID,
  undelivered: OF_PAID,
  refused: ['evidence', 'reason'],
  refundDue: OF_PAID,
  refunding: [...OF_PAID, 'refundTransaction'],
  refunded: [...OF_PAID, 'refundTransaction'],
  unresolved: ['reason'],
};

/** The evidence of a state: the 402 promise and "no delivery without payment" rest on it. */
function evidenceOf(state: PaymentState): ReadonlySet<unknown> | undefined {
  if (state === 'refused') return WORTHLESS;
  return REQUIRED[state].includes('evidence') ? PAID : undefined;
}

/**
 * The terms and nothing else: a wider object must not bring a state or a transaction into a new
 * record. @throws LedgerCorruption
 */
export function assertTerms(candidate: PaymentTerms): PaymentTerms {
  const terms: Record<string, unknown> = {};
  for (const [name, rule] of TERM_RULES) {
    const value = candidate[name as keyof PaymentTerms];
    if (!rule(value)) throw new LedgerCorruption(`${name} is malformed`);
    if (value !== undefined) terms[name] = value;
  }
  return terms as unknown as PaymentTerms;
}

/**
 * A record as a store returned it, or as it is about to be written. `checked`: members that were
 * checked before; those with the same value are not checked again. @throws LedgerCorruption
 */
export function assertRecord(candidate: object, checked: Partial<PaymentRecord> = {}): PaymentRecord {
  const record = candidate as PaymentRecord;
  for (const [name, rule] of RECORD_RULES) {
    const value = record[name];
    if ((value === undefined || value !== checked[name]) && !rule(value))
      throw new LedgerCorruption(`${name} is malformed`);
  }
  for (const name of REQUIRED[record.state])
    if (record[name] === undefined) throw new LedgerCorruption(`${record.state} without ${name}`);
  const evidence = evidenceOf(record.state);
  if (evidence !== undefined ? !evidence.has(record.evidence) : record.evidence !== undefined)
    throw new LedgerCorruption(`${record.state} on the evidence of ${record.evidence ?? 'nothing'}`);
  if (record.transaction === undefined && NEEDS_TRANSACTION.has(record.evidence))
    throw new LedgerCorruption(`${record.evidence} without transaction`);
  return record;
}

/** @throws RangeError a bug of the caller, before anything is written. */
function assertSpan(what: 'lease' | 'pause', ms: number): void {
  const most = what === 'lease' ? MAX_LEASE_MS : MAX_PAUSE_MS;
  if (!Number.isSafeInteger(ms) || ms < 0 || ms > most) throw new RangeError(`a ${what} is 0 to ${most} ms`);
}

/** @throws LedgerCorruption before anything is written. */
function assertNewToken(token: NewToken | undefined): void {
  if (token?.kind !== 'issued') return;
  if (!digest(token.id)) throw new LedgerCorruption('token id is malformed');
  if (!positive(token.forMs)) throw new LedgerCorruption('a token is remembered for whole milliseconds');
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertKeeping(keeping: Keeping | undefined): void {
  if (keeping === undefined) return;
  const { answer, forMs } = keeping;
  if (!Number.isSafeInteger(forMs) || forMs < 0) throw new RangeError('an answer is kept for whole milliseconds');
  if (answer === undefined) return;
  const most = answer.headers[SEALED_ANSWER] === undefined ? MAX_KEPT_BYTES : MAX_STORED_ANSWER_BYTES;
  if (answer.body.byteLength > most) throw new RangeError(`an answer over ${most} bytes is not kept`);
}

/**
 * Evidence comes with the change to `settled` or `refused`, which need it, and with no other
 * command; so does the transaction of a refund with `refunding` and `refunded`. The status of an
 * answer comes with `worked`, which needs it, or with `settling`. `to` is undefined for a note.
 * @throws LedgerCorruption before anything is written
 */
function assertFacts(
  to: PaymentState | undefined,
  { evidence, transaction, reason, refundTransaction, answered, bought }: PaymentFacts,
): void {
  if (bought !== undefined && to !== undefined) throw new LedgerCorruption(`${to} with the buyer of an answer`);
  if (!RECORD.answered(answered)) throw new LedgerCorruption('answered is malformed');
  if (answered === undefined ? to === 'worked' : to !== 'worked' && to !== 'settling')
    throw new LedgerCorruption(
      `${to ?? 'a note'} ${answered === undefined ? 'without' : 'with'} the status of an answer`,
    );
  const isRefund = to === 'refunding' || to === 'refunded';
  if (isRefund !== (refundTransaction !== undefined))
    throw new LedgerCorruption(`${to ?? 'a note'} ${isRefund ? 'without' : 'with'} a transaction of a refund`);
  const wanted = to === 'settled' ? PAID : to === 'refused' ? WORTHLESS : undefined;
  if (wanted === undefined ? evidence !== undefined : !wanted.has(evidence))
    throw new LedgerCorruption(`${to ?? 'a note'} on the evidence of ${evidence ?? 'nothing'}`);
  if (to === 'settled' && NEEDS_TRANSACTION.has(evidence) && transaction === undefined)
    throw new LedgerCorruption('settled without transaction');
  if ((to === 'refused' || to === 'withdrawn') && reason === undefined)
    throw new LedgerCorruption(`${to} without reason`);
}
