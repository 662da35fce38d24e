/** Where in a token a value stands, as far as it matters for what may be withheld there. */
export type Place =
  | 'token'
  | 'mandates'
  | 'mandate'
  | 'constraints'
  | 'constraint'
  | 'requirements'
  | 'requirement'
  | 'choices'
  | 'elsewhere';

/** `delegate_payload[].constraints[].allowed` and `.items[].acceptable_items`, a step at a time. */
const MEMBERS: ReadonlyMap<string, Place> = new Map([
  ['token.delegate_payload', 'mandates'],
  ['mandate.constraints', 'constraints'],
  ['constraint.allowed', 'choices'],
  ['constraint.items', 'requirements'],
  ['requirement.acceptable_items', 'choices'],
]);
const ELEMENTS: ReadonlyMap<Place, Place> = new Map([
  ['mandates', 'mandate'],
  ['constraints', 'constraint'],
  ['requirements', 'requirement'],
]);

/** Where the member of an object stands. */
export function memberPlace(object: Place, name: string): Place {
  return MEMBERS.get(`${object}.${name}`) ?? 'elsewhere';
}

/** Where the elements of an array stand. */
export function elementPlace(array: Place): Place {
  return ELEMENTS.get(array) ?? 'elsewhere';
}

/**
 * Whether elements of an array may be withheld: sibling mandates, and choices that this merchant need not know. Anywhere else in a
 * mandate a hidden digest could be a limit (ap2 7.3).
 */
export function mayWithhold(array: Place): boolean {
  return array === 'mandates' || array === 'choices';
}
