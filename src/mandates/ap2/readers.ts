/** Reads the members of a mandate, and its constraints by a table of readers. */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { Refused } from './reasons.ts';

/** 9999-12-31T23:59:59Z in unix seconds: a time in milliseconds is beyond it (ap2 9). */
export const LAST_TIME = 253_402_300_799;
const TIMES: readonly string[] = ['iat', 'nbf', 'exp'];

/** The one revealed mandate of a token; undefined where it carries none. @throws Refused */
export function mandateOf(claims: JsonObject): JsonObject | undefined {
  const delegated = claims['delegate_payload'];
  if (delegated === undefined) return undefined;
  if (!Array.isArray(delegated)) throw new Refused('claims_invalid');
  const [mandate, ...more]: readonly Json[] = delegated;
  if (mandate === undefined) throw new Refused('disclosure_missing');
  if (more.length > 0 || !isObject(mandate)) throw new Refused('claims_invalid');
  return mandate;
}

/**
 * The JWK of `cnf` (RFC 7800), which the next hop must be signed with. A token that carries a
 * mandate names the key in the mandate; with a second one beside it neither is certain.
 * @throws Refused
 */
export function confirmedKey(claims: JsonObject, mandate: JsonObject | undefined): Json {
  if (mandate !== undefined && claims['cnf'] !== undefined) throw new Refused('chain_broken');
  const confirmation = (mandate ?? claims)['cnf'];
  if (confirmation === undefined) throw new Refused('chain_broken');
  if (!isObject(confirmation)) throw new Refused('claims_invalid');
  const jwk = confirmation['jwk'];
  if (jwk === undefined) throw new Refused('chain_broken');
  return jwk;
}

/** Whether a segment names a key for a next hop, in the token or in its mandate. */
export function hasConfirmation(claims: JsonObject, mandate: JsonObject | undefined): boolean {
  return claims['cnf'] !== undefined || mandate?.['cnf'] !== undefined;
}

/** Whether a claim is a time: whole unix seconds up to the year 9999. */
export function isTime(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= LAST_TIME;
}

/**
 * Checks the times of tokens and of the mandates in them (ap2 7.6, step 8; ap2 9); `now` and `skew`
 * in seconds, `skew` once a comparison. Returns the earliest `exp`, or infinity.
 * @throws Refused
 */
export function checkTimes(documents: readonly JsonObject[], now: number, skew: number): number {
  for (const document of documents)
    for (const name of TIMES)
      if (document[name] !== undefined && !isTime(document[name])) throw new Refused('claims_invalid');
  const ends = earliestEnd(documents);
  // RFC 7519, section 4.1.4: "on or after".
  if (now >= ends + skew) throw new Refused('expired');
  for (const { nbf, iat } of documents)
    for (const begins of [nbf, iat]) if (isTime(begins) && begins > now + skew) throw new Refused('not_yet_valid');
  return ends;
}

/** The earliest `exp`, unix seconds, or infinity. */
export function earliestEnd(documents: readonly JsonObject[]): number {
  return documents.reduce((ends, { exp }) => (isTime(exp) ? Math.min(ends, exp) : ends), Number.POSITIVE_INFINITY);
}

// A well signed member may still be of a wrong type: nothing is converted (ap2 7.6).

/** @throws Refused claims_invalid */
export function object(value: Json | undefined): JsonObject {
  if (!isObject(value)) throw new Refused('claims_invalid');
  return value;
}

/** @throws Refused claims_invalid */
export function list(value: Json | undefined): readonly Json[] {
  if (!Array.isArray(value)) throw new Refused('claims_invalid');
  return value as readonly Json[];
}

/** @throws Refused claims_invalid */
export function text(value: Json | undefined): string {
  if (typeof value !== 'string') throw new Refused('claims_invalid');
  return value;
}

/** A text that is not empty: two empty identities would be equal. @throws Refused claims_invalid */
export function identity(value: Json | undefined): string {
  const read = text(value);
  if (read === '') throw new Refused('claims_invalid');
  return read;
}

/** A whole number from `least` to 2^53 - 1. @throws Refused claims_invalid */
export function whole(value: Json | undefined, least: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) throw new Refused('claims_invalid');
  return value;
}

/** Reads a member that may be absent; `null` is not absent. */
export function optional<T>(value: Json | undefined, read: (value: Json) => T): T | undefined {
  return value === undefined ? undefined : read(value);
}

/** A constraint of a known type. */
export interface NamedConstraint<R> {
  readonly type: string;
  readonly rule: R;
}

/** A reader for each type of constraint; it throws Refused. */
type ConstraintReaders<R> = Readonly<Record<string, (constraint: JsonObject) => R>>;

/**
 * Reads all constraints of an open mandate before one of them is applied. An unknown type refuses
 * the mandate: it may forbid just this purchase (ap2 2.2).
 * @throws Refused claims_invalid, constraint_unresolved
 */
export function readConstraints<R>(open: JsonObject, readers: ConstraintReaders<R>): readonly NamedConstraint<R>[] {
  return list(open['constraints']).map((constraint) => readConstraint(constraint, readers));
}

/** Demands a constraint that bounds an open mandate. @throws Refused claims_invalid */
export function checkHas(rules: readonly NamedConstraint<unknown>[], demanded: string): void {
  if (!rules.some(({ type }) => type === demanded)) throw new Refused('claims_invalid', { constraint: demanded });
}

function readConstraint<R>(value: Json, readers: ConstraintReaders<R>): NamedConstraint<R> {
  const constraint = object(value);
  const type = text(constraint['type']);
  const reader = Object.hasOwn(readers, type) ? readers[type] : undefined;
  if (reader === undefined) throw new Refused('constraint_unresolved');
  return { type, rule: named(type, () => reader(constraint)) };
}

/** Adds the type of the constraint, which is a known one, to whatever `read` refuses. */
export function named<T>(constraint: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Refused ? new Refused(error.reason, { constraint }) : error;
  }
}
