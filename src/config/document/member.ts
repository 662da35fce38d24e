/** Where a value stands in a document. */

import { memberPath } from '../../problems/problem.ts';
import { NAMES } from './schema-at.ts';

/** A member of the document or of one of its members; its path is written only where it is told. */
export interface Member {
  /** Undefined: the document. */
  readonly parent: Member | undefined;
  readonly key: string | number;
}

/** As in ConfigProblem; empty for the document. */
export function pathTo(at: Member | undefined): string {
  return at === undefined ? '' : memberPath(pathTo(at.parent), at.key);
}

/** The members that a member is in, the outermost first, and itself. */
export function membersTo(at: Member | undefined): readonly Member[] {
  const members: Member[] = [];
  for (let member = at; member !== undefined; member = member.parent) members.unshift(member);
  return members;
}

/** The keys and positions from the document down to a member. */
export function stepsTo(at: Member | undefined): readonly Member['key'][] {
  return membersTo(at).map(({ key }) => key);
}

/**
 * What of a key may be told. One that the schema does not name may be a piece of a value, and most
 * likely is where it has no value itself (`bare`).
 */
export function toldName(name: string, bare: boolean): string {
  if (NAMES.has(name)) return name;
  const told = bare ? '' : (/^[A-Za-z0-9_.$/@-]{0,64}/.exec(name)?.[0] ?? '');
  return told.length === name.length ? name : `${told}…`;
}
