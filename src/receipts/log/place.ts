/** Where a line stands in the log of receipts: the order in which the store took the lines. */

/** Of all series together: later lines have larger ones. */
export interface Place {
  readonly major: number;
  readonly minor: number;
}

/** The place of a position, `a-b`; undefined for what is none. */
export function placeOf(position: string): Place | undefined {
  const [, major, minor] = /^(\d{1,15})-(\d{1,15})$/.exec(position) ?? [];
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}

/** Below 0 where `one` is earlier. */
export function order(one: Place, other: Place): number {
  return one.major - other.major || one.minor - other.minor;
}
