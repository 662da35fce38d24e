import { RECEIPT_ID } from '../../receipts/receipt.ts';
import type { PaymentRecord, PaymentState, PaymentTerms } from './ledger.ts';

/** Longest lease anyone may ask for, milliseconds: a mistake in a deadline must not lock a buyer out for hours. */
export const MAX_LEASE_MS = 600_000;

const SHA256_HEX = /^[0-9a-f]{64}$/;
const DIGITS = /^\d{1,78}$/;
const CHANNELS: ReadonlySet<unknown> = new Set(['http', 'mcp', 'a2a', 'acp']);
const STATES: ReadonlySet<unknown> = new Set<PaymentState>([
  'reserved',
  'settling',
  'settled',
  'delivered',
  'undelivered',
  'refused',
  'refundDue',
]);

/** Thrown before a record that breaks a rule is written, and after one was read. A bug or a damaged store, never the buyer's doing. */
export class LedgerCorruption extends Error {
  /** @param rule What is broken; names fields, never their contents. */
  constructor(rule: string) {
    super(`payment record: ${rule}`);
    this.name = 'LedgerCorruption';
  }
}

type Rule = (value: unknown) => boolean;

const text: Rule = (value) => typeof value === 'string' && value.length > 0;
const optionalText: Rule = (value) => value === undefined || text(value);
const count: Rule = (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
const positive: Rule = (value) => count(value) && value !== 0;
const like =
  (pattern: RegExp): Rule =>
  (value) =>
    typeof value === 'string' && pattern.test(value);

const TERMS: Readonly<Record<keyof PaymentTerms, Rule>> = {
  payId: like(SHA256_HEX),
  bind: like(SHA256_HEX),
  requestId: text,
  resourceId: text,
  channel: (value) => CHANNELS.has(value),
  // The book of receipts is ordered by this id, so its shape is not a matter of taste.
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
};

const RECORD: Readonly<Record<keyof PaymentRecord, Rule>> = {
  ...TERMS,
  state: (value) => STATES.has(value),
  owner: text,
  fence: positive,
  leaseUntil: count,
  step: text,
  tries: count,
  reservedAt: positive,
  changedAt: positive,
  settledAt: (value) => value === undefined || positive(value),
  transaction: optionalText,
  rawTransaction: optionalText,
  reason: optionalText,
};

/** What must be known in a state. The Redis scripts get these names as an argument, so the rule exists once. */
export const REQUIRED: Readonly<Record<PaymentState, readonly (keyof PaymentRecord)[]>> = {
  reserved: [],
  settling: [],
  settled: ['transaction', 'settledAt'],
  delivered: ['transaction', 'settledAt'],
  undelivered: ['transaction', 'settledAt'],
  refused: [],
  refundDue: ['transaction', 'settledAt'],
};

/** The terms and nothing else: a wider object must not smuggle a state or a transaction into a new record. @throws LedgerCorruption */
export function assertTerms(candidate: PaymentTerms): PaymentTerms {
  const terms: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(TERMS)) {
    const value = candidate[name as keyof PaymentTerms];
    if (!rule(value)) throw new LedgerCorruption(`${name} is malformed`);
    terms[name] = value;
  }
  return terms as unknown as PaymentTerms;
}

/** A record as a store returned it, or as it is about to be written. @throws LedgerCorruption */
export function assertRecord(candidate: object): PaymentRecord {
  const record = candidate as PaymentRecord;
  for (const [name, rule] of Object.entries(RECORD))
    if (!rule(record[name as keyof PaymentRecord])) throw new LedgerCorruption(`${name} is malformed`);
  for (const name of REQUIRED[record.state])
    if (record[name] === undefined) throw new LedgerCorruption(`${record.state} without ${name}`);
  return record;
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertLease(leaseMs: number): void {
  if (!Number.isSafeInteger(leaseMs) || leaseMs < 0 || leaseMs > MAX_LEASE_MS)
    throw new RangeError(`a lease is 0 to ${MAX_LEASE_MS} ms`);
}
