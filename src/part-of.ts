/** The part of a bound that one of several processes has. */

/**
 * A whole part, at least 1, so that all processes of one gateway have together what a single one
 * would have.
 */
export function partOf(bound: number, processes: number): number {
  return Math.max(1, Math.floor(bound / processes));
}
