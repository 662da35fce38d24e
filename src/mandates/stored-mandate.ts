/** The mandate in a payment record: how it is written, and checked when it is read. */

import type { MandateClaim, OpenMandateUse, Recurrence } from './register.ts';

/** The mandate that a payment was admitted with: what receipts state of it, and what it uses up. */
export interface StoredMandate {
  readonly method: 'ap2';
  readonly mode: 'direct' | 'autonomous';
  /** base64url of SHA-256 over the leaf JWT. */
  readonly reference: string;
  /** The same over the leaf with the disclosures that were checked with it. */
  readonly referenceSdHash: string;
  readonly mandateIssuer: string;
  readonly checkoutIssuer: string;
  /** `jti`. */
  readonly checkoutId: string;
  readonly claim: MandateClaim;
}

/** Most ids in one claim: a call has two presentations, each of at most 4 segments. */
const MAX_ONCE = 8;
const MAX_OPEN = 16;
/** Longest id, characters: a `jti` has at most 128. */
const MAX_ID_LENGTH = 256;
/** Last second of the year 9999, as for all times of a mandate (ap2 9), and the longest skew. */
const MAX_TIME = 253_402_300_799 + 3_600;
const UNITS = /^(?:0|[1-9]\d{0,15})$/;

/** The text for `PaymentTerms.mandate`. */
export function storedMandate({
  mode,
  reference,
  referenceSdHash,
  issuer: mandateIssuer,
  checkoutIssuer,
  checkoutId,
  claim,
}: Omit<StoredMandate, 'method' | 'mandateIssuer'> & { readonly issuer: string }): string {
  return JSON.stringify({
    method: 'ap2',
    mode,
    reference,
    referenceSdHash,
    mandateIssuer,
    checkoutIssuer,
    checkoutId,
    claim,
  } satisfies StoredMandate);
}

/** Reads what `storedMandate` wrote; undefined for missing, unknown and wrong members. */
export function readStoredMandate(text: string): StoredMandate | undefined {
  const stored = parsed(text);
  return isShaped(stored, STORED) ? (stored as unknown as StoredMandate) : undefined;
}

/** Whether a claim is within the bounds of the register. Its ids differ: each is counted once. */
export function isMandateClaim(value: unknown): value is MandateClaim {
  return isShaped(value, CLAIM);
}

type Rule = (value: unknown) => boolean;
type Shape<T> = Readonly<Record<keyof T, Rule>>;

const text: Rule = (value) => typeof value === 'string' && value.length > 0 && value.isWellFormed();
const id: Rule = (value) => text(value) && (value as string).length <= MAX_ID_LENGTH;
const time: Rule = (value) => typeof value === 'number' && value >= 0 && value <= MAX_TIME;
/** An age may be negative: clocks differ, so a fresh mandate may seem to be from the future. */
const age: Rule = (value) => typeof value === 'number' && Math.abs(value) <= MAX_TIME;
const units: Rule = (value) => typeof value === 'string' && UNITS.test(value) && Number.isSafeInteger(Number(value));
const count: Rule = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const optional =
  (rule: Rule): Rule =>
  (value) =>
    value === undefined || rule(value);

const RECURRENCE: Shape<Recurrence> = {
  units,
  budgetUnits: units,
  maxOccurrences: optional(count),
  periodStart: optional(time),
};
const USE: Shape<OpenMandateUse> = {
  id,
  age: optional(age),
  until: time,
  recurrence: optional((value) => isShaped(value, RECURRENCE)),
};
const CLAIM: Shape<MandateClaim> = {
  at: time,
  age: optional(age),
  once: (value) => isList(value, 1, MAX_ONCE, id) && areDistinct(value),
  onceUntil: time,
  open: (value) => isList(value, 0, MAX_OPEN, (use) => isShaped(use, USE)) && areDistinct(value.map(idOf)),
};
const STORED: Shape<StoredMandate> = {
  method: (value) => value === 'ap2',
  mode: (value) => value === 'direct' || value === 'autonomous',
  reference: text,
  referenceSdHash: text,
  mandateIssuer: text,
  checkoutIssuer: text,
  checkoutId: text,
  claim: isMandateClaim,
};

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function isShaped(value: unknown, shape: Readonly<Record<string, Rule>>): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const given = value as Readonly<Record<string, unknown>>;
  return (
    Object.entries(shape).every(([name, rule]) => rule(given[name])) &&
    Object.keys(given).every((name) => Object.hasOwn(shape, name))
  );
}

function isList(value: unknown, least: number, most: number, rule: Rule): value is readonly unknown[] {
  return Array.isArray(value) && value.length >= least && value.length <= most && value.every(rule);
}

function idOf(use: unknown): unknown {
  return (use as OpenMandateUse).id;
}

function areDistinct(values: readonly unknown[]): boolean {
  return new Set(values).size === values.length;
}
