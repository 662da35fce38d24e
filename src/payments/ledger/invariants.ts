/** The rules of a payment record, checked before it is written and after it was read. */

import { readStoredMandate } from '../../mandates/stored-mandate.ts';
import { RECEIPT_ID } from '../../receipts/receipt.ts';
import {
  type Evidence,
  type Keeping,
  MAX_KEPT_BYTES,
  MAX_STORED_ANSWER_BYTES,
  type NewToken,
  type PaymentFacts,
  type PaymentRecord,
  type PaymentState,
  type PaymentTerms,
  SEALED_ANSWER,
} from './ledger.ts';

/** Longest lease, milliseconds: a wrong deadline must not lock a buyer out for hours. */
export const MAX_LEASE_MS = 600_000;
/** Longest pause of a reconciler, milliseconds. */
export const MAX_PAUSE_MS = 48 * 60 * 60 * 1_000;

const SHA256_HEX = /^[0-9a-f]{64}$/;
const DIGITS = /^\d{1,78}$/;
const CHANNELS: ReadonlySet<unknown> = new Set(['http', 'mcp', 'a2a', 'acp', 'origin']);
const STATES: ReadonlySet<unknown> = new Set<PaymentState>([
  'reserved',
  'worked',
  'settling',
  'withdrawn',
  'settled',
  'delivered',
  'undelivered',
  'refused',
  'refundDue',
  'refunding',
  'refunded',
  'unresolved',
]);

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
  state: (value) => STATES.has(value),
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

/** The fields that a state requires. */
export const REQUIRED: Readonly<Record<PaymentState, readonly (keyof PaymentRecord)[]>> = {
  reserved: [],
  worked: ['answered'],
  settling: [],
  withdrawn: ['reason'],
  settled: ['evidence', 'settledAt'],
  delivered: ['evidence', 'settledAt'],
  undelivered: ['evidence', 'settledAt'],
  refused: ['evidence', 'reason'],
  refundDue: ['evidence', 'settledAt'],
  refunding: ['evidence', 'settledAt', 'refundTransaction'],
  refunded: ['evidence', 'settledAt', 'refundTransaction'],
  unresolved: ['reason'],
};

/** The evidence of a state: the 402 promise and "no delivery without payment" rest on it. */
const EVIDENCE: Readonly<Record<PaymentState, ReadonlySet<unknown> | undefined>> = {
  reserved: undefined,
  worked: undefined,
  settling: undefined,
  withdrawn: undefined,
  settled: PAID,
  delivered: PAID,
  undelivered: PAID,
  refused: WORTHLESS,
  refundDue: PAID,
  refunding: PAID,
  refunded: PAID,
  unresolved: undefined,
};

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
 * A record as a store returned it, or as it is about to be written. `checked`: what it was made of;
 * members that are the same are not checked again. @throws LedgerCorruption
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
  const evidence = EVIDENCE[record.state];
  if (evidence !== undefined ? !evidence.has(record.evidence) : record.evidence !== undefined)
    throw new LedgerCorruption(`${record.state} on the evidence of ${record.evidence ?? 'nothing'}`);
  if (record.transaction === undefined && NEEDS_TRANSACTION.has(record.evidence))
    throw new LedgerCorruption(`${record.evidence} without transaction`);
  return record;
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertLease(leaseMs: number): void {
  if (!Number.isSafeInteger(leaseMs) || leaseMs < 0 || leaseMs > MAX_LEASE_MS)
    throw new RangeError(`a lease is 0 to ${MAX_LEASE_MS} ms`);
}

/** @throws LedgerCorruption before anything is written. */
export function assertNewToken(token: NewToken | undefined): void {
  if (token?.kind !== 'issued') return;
  if (!digest(token.id)) throw new LedgerCorruption('token id is malformed');
  if (!positive(token.forMs)) throw new LedgerCorruption('a token is remembered for whole milliseconds');
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertPause(againMs: number): void {
  if (!Number.isSafeInteger(againMs) || againMs < 0 || againMs > MAX_PAUSE_MS)
    throw new RangeError(`a pause is 0 to ${MAX_PAUSE_MS} ms`);
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
export function assertFacts(
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
