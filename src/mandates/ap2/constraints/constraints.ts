/** Reads the constraints of an open mandate, of either family, by a table of readers. */

import type { Json, JsonObject } from '../../../json/types.ts';
import { list, object, text } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';

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

/** Without a demanded constraint an open mandate allows too much. @throws Refused claims_invalid */
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
