/** One line of the report: what was measured, what was found, and whether that is the goal. */
export interface Row {
  readonly what: string;
  readonly found: string;
  readonly goal: string;
  readonly met: boolean;
}

/** The report as aligned text. */
export function table(rows: readonly Row[]): string {
  const widths = (['what', 'found', 'goal'] as const).map((column) => ({
    column,
    width: Math.max(...rows.map((row) => row[column].length)),
  }));
  return rows
    .map(
      (row) =>
        `${row.met ? 'met    ' : 'NOT MET'}  ${widths.map(({ column, width }) => row[column].padEnd(width)).join('  ')}`,
    )
    .join('\n');
}
