/**
 * `CHAOS=all make test SPEC=verification/chaos`: every kind of call at every step, on each store,
 * with each rail. A test run has one death for each different set of writes and calls.
 */
export const EVERY = process.env['CHAOS'] === 'all';

/** The rows of a run: all of them, or those that are not marked. */
export function rowsOf<Row extends { readonly rare?: true }>(rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ rare }) => EVERY || rare === undefined);
}
