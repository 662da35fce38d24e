/** What an import tells: what became a resource, what did not and why, and what was left out. */

import type { Import } from './import.ts';

/** Lines of one table before the rest is only counted. */
const MAX_ROWS = 200;

/** As JSON, for programs. */
export function jsonReport({ resources, skipped, narrowed, notChosen }: Import): string {
  return `${JSON.stringify({ resources: Object.keys(resources), skipped, narrowed, notChosen }, null, 2)}\n`;
}

/** As text; `columns`: of the terminal, undefined for whole lines. */
export function textReport({ resources, skipped, narrowed, notChosen }: Import, columns: number | undefined): string {
  const made = Object.keys(resources).length;
  const parts = [
    `${made} of ${made + skipped.length} operations became resources${notChosen === 0 ? '' : `; ${notChosen} were not chosen`}\n`,
  ];
  if (skipped.length > 0)
    parts.push(
      table(
        'SKIPPED',
        'WHY: it …',
        skipped.map(({ operation, reason }) => [operation, reason]),
        columns,
      ),
    );
  if (narrowed.length > 0)
    parts.push(
      table(
        'NOT TAKEN',
        'WHY: it …',
        narrowed.map(({ resource, path, reason }) => [`${resource}: ${path}`, reason]),
        columns,
      ),
    );
  return parts.join('\n');
}

function table(
  left: string,
  right: string,
  rows: readonly (readonly [string, string])[],
  columns: number | undefined,
): string {
  const shown = rows.slice(0, MAX_ROWS);
  const longest = Math.max(left.length, ...shown.map(([name]) => name.length));
  const width = columns === undefined ? longest : Math.min(longest, Math.max(20, Math.floor(columns * 0.5)));
  const lines = [[left, right] as const, ...shown].map(([name, reason]) => {
    const line = `${cut(name, width).padEnd(width)}  ${reason}`;
    return columns === undefined ? line : cut(line, columns);
  });
  const more = rows.length - shown.length;
  return `${[...lines, ...(more > 0 ? [`… and ${more} more (--json lists them all)`] : [])].map((line) => line.trimEnd()).join('\n')}\n`;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
