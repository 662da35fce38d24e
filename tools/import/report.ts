/** What an import tells: what became a resource, what did not and why, and what was left out. */

import { aligned } from '../../src/app/route-table.ts';
import type { Import } from './import.ts';
import { channelsOf } from './output.ts';

/** Lines of one table before the rest is only counted. */
const MAX_ROWS = 200;

/** As JSON, for programs. */
export function jsonReport({ resources, skipped, narrowed, notChosen }: Import): string {
  return `${JSON.stringify({ resources: Object.keys(resources), skipped, narrowed, notChosen }, null, 2)}\n`;
}

/** What became a resource; `columns`: of the terminal, undefined for whole lines. */
export function resourceTable({ resources }: Import, columns: number | undefined): string {
  const rows = Object.entries(resources).map(
    ([
      id,
      {
        backend: { method, path },
        pricing,
        ...resource
      },
    ]) => [
      ...[id, method, path],
      pricing.type === 'free' ? 'free' : `${pricing.amount} ${pricing.currency}`,
      channelsOf(resource).join(', '),
    ],
  );
  const lines = aligned([['id', 'method', 'path', 'price', 'channels'], ...rows.slice(0, MAX_ROWS)]);
  return linesOf(lines, rows.length - MAX_ROWS, columns);
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
  const lines = [[left, right] as const, ...shown].flatMap(([name, reason]) =>
    wrapped(reason, columns === undefined ? undefined : columns - width - 2).map(
      (part, at) => `${(at === 0 ? cut(name, width) : '').padEnd(width)}  ${part}`,
    ),
  );
  return linesOf(lines, rows.length - shown.length, columns);
}

function linesOf(lines: readonly string[], more: number, columns: number | undefined): string {
  const whole = more > 0 ? [...lines, `… and ${more} more (--json lists them all)`] : lines;
  return whole.map((line) => `${(columns === undefined ? line : cut(line, columns)).trimEnd()}\n`).join('');
}

/** Lines of whole words; a word that is longer than a line is cut with it. */
function wrapped(text: string, width = Number.POSITIVE_INFINITY): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' '))
    if (line === '') line = word;
    else if (line.length + 1 + word.length <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = word;
    }
  return [...lines, line];
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
