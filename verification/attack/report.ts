/** Writes the tables of a run of the attack catalogue. */

import { INCIDENTS, ROWS } from './catalogue.ts';
import { type Findings, isIncident, type Judged, judgeGoals, judgeIncident, judgeRow } from './verdict.ts';

/** The three tables of a run, as text: rows, published attacks, goals. */
export function report(findings: Findings): string {
  const ids = Object.keys(ROWS).filter((id) => !isIncident(id));
  const incidents = Object.keys(INCIDENTS).filter(isIncident);
  const lines = ({ id, what, mark, because }: Judged): readonly string[] => [mark, id, what, because];
  return [
    title('The catalogue'),
    table(
      ['', 'row', 'attack', 'because'],
      ids.map((id) => lines(judgeRow(id, findings))),
    ),
    title('Published attacks and incidents'),
    table(
      ['', 'id', 'source', 'covered by'],
      incidents.map((id) => lines(judgeIncident(id, findings))),
    ),
    title('Goals'),
    table(
      ['', 'goal', 'target', 'measured'],
      judgeGoals(findings).map(({ mark, goal, target, measured }) => [mark, goal, target, measured]),
    ),
  ].join('\n');
}

/** Whether every row, incident and goal has passed, or has a reason to be open. */
export function isMet(findings: Findings): boolean {
  const excused = (id: string): boolean => 'notYet' in ROWS[id as keyof typeof ROWS];
  const rows = Object.keys(ROWS).every((id) => excused(id) || judgeRow(id, findings).mark === 'pass');
  return rows && judgeGoals(findings).every(({ mark }) => mark === 'pass');
}

function title(text: string): string {
  return `\n${text}\n${'─'.repeat(text.length)}`;
}

/** Pads each column but the last to its widest cell. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => (row[at] ?? '').length)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at === cells.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd();
  return [line(head), ...rows.map(line)].join('\n');
}
