/** Judges the rows and goals of the attack catalogue by the tests that ran, and tells of each. */

import { type Bound, FIGURES, type Figure, GOALS, INCIDENTS, ROWS } from './catalogue.ts';

/** One test that ran. */
export interface Outcome {
  readonly rows: readonly string[];
  readonly name: string;
  readonly passed: boolean;
}

/** The results of a run. */
export interface Findings {
  readonly outcomes: readonly Outcome[];
  /** Every value that a test reported for a figure. */
  readonly figures: ReadonlyMap<Figure, readonly number[]>;
  readonly quick: boolean;
}

/** `open`: no test ran. */
interface Judged {
  readonly mark: 'pass' | 'FAIL' | 'open';
  readonly text: string;
}

/** A line for each row, incident and goal, and whether all of them passed. */
export function report(findings: Findings): { readonly lines: readonly string[]; readonly met: boolean } {
  const rows = Object.entries(ROWS).map(([id, attack]) => {
    const { mark, text } = judgeRow(id, findings);
    return { mark, line: `${mark} ${id} ${attack}: ${text}` };
  });
  const goals = GOALS.map(({ goal, figures, rows: ids }) => {
    const named = ids.flatMap((id) => (id === 'I*' ? Object.keys(INCIDENTS) : [id]));
    const judged = [
      ...figures.map((figure) => judgeFigure(figure, findings)),
      ...named.map((id) => judgeRow(id, findings)),
    ];
    const told = judged.filter((one, at) => at < figures.length || one.mark !== 'pass').map(({ text }) => text);
    return { mark: worst(judged), line: `${worst(judged)} goal ${goal}: ${[...told, ...ids].join('; ')}` };
  });
  const all = [...rows, ...goals];
  return { lines: all.map(({ line }) => line), met: all.every(({ mark }) => mark === 'pass') };
}

/** A row passes when it has tests and all have passed; an incident passes with its rows. */
function judgeRow(id: string, findings: Findings): Judged {
  const own = findings.outcomes.filter(({ rows }) => rows.includes(id));
  const failed = own.filter(({ passed }) => !passed);
  const mark = own.length === 0 ? 'open' : failed.length > 0 ? 'FAIL' : 'pass';
  const text = failed.length > 0 ? `${failed.length} of ${own.length}: ${failed[0]?.name}` : `${own.length} tests`;
  const parts: readonly string[] = new Map<string, readonly string[]>(Object.entries(INCIDENTS)).get(id) ?? [];
  const judged = [{ mark, text: `${id}: ${text}` } as const, ...parts.map((part) => judgeRow(part, findings))];
  return judged.find((one) => one.mark === worst(judged)) ?? { mark, text };
}

function judgeFigure(figure: Figure, { figures, quick }: Findings): Judged {
  const { combined, atMost, atLeast, longOnly, quick: quickly }: Bound = FIGURES[figure];
  const least = quick ? (quickly ?? atLeast) : atLeast;
  const values = figures.get(figure);
  if (values === undefined)
    return quick && longOnly === true
      ? { mark: 'pass', text: `${figure} in the long run only` }
      : { mark: 'open', text: `${figure} not measured` };
  const value = combined === 'sum' ? values.reduce((sum, one) => sum + one, 0) : Math.max(...values);
  const met = (least === undefined || value >= least) && (atMost === undefined || value <= atMost);
  const bounds = [least === undefined ? '' : `>= ${least}`, atMost === undefined ? '' : `<= ${atMost}`].filter(Boolean);
  return { mark: met ? 'pass' : 'FAIL', text: `${figure} ${Math.round(value * 100) / 100} (${bounds.join(', ')})` };
}

function worst(judged: readonly Judged[]): Judged['mark'] {
  const marks = judged.map(({ mark }) => mark);
  return marks.includes('FAIL') ? 'FAIL' : marks.includes('open') ? 'open' : 'pass';
}
