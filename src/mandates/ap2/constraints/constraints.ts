import type { Json, JsonObject } from '../../../json/types.ts';
import { list, object, text } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';

/** A constraint that was understood. */
export interface NamedConstraint<R> {
  readonly type: string;
  readonly rule: R;
}

/** How each type of constraint is read. The readers throw Refused. */
type ConstraintReaders<R> = Readonly<Record<string, (constraint: JsonObject) => R>>;

/**
 * Reads all constraints of an open mandate before one of them is applied. An unknown type refuses
 * the mandate: it may forbid just this purchase (ap2 2.2).
 * @throws Refused claims_invalid, constraint_unresolved
 */
export function readConstraints<R>(open: JsonObject, readers: ConstraintReaders<R>): readonly NamedConstraint<R>[] {
  return list(open['constraints']).map((constraint) => readConstraint(constraint, readers));
}

/**
 * An open mandate without a constraint that it must have allows too much. @throws Refused
 * claims_invalid
 */
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

/** Whatever is wrong in a constraint is told with its type, which is one of ours. */
export function named<T>(constraint: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Refused ? new Refused(error.reason, { constraint }) : error;
  }
}
