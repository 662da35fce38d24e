/** Judges the rows and goals of the attack catalogue by the tests that ran. */

import { type Bound, type CatalogueRow, FIGURES, type Figure, GOALS, INCIDENTS, ROWS } from './catalogue.ts';

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
export type Mark = 'pass' | 'FAIL' | 'open';

export interface Judged {
  readonly id: string;
  readonly what: string;
  readonly mark: Mark;
  /** The reason for the mark, in words. */
  readonly because: string;
}

export interface JudgedGoal {
  readonly goal: string;
  readonly target: string;
  readonly measured: string;
  readonly mark: Mark;
}

/** A row passes when it has tests and all have passed. */
export function judgeRow(id: string, { outcomes }: Findings): Judged {
  const row: CatalogueRow | undefined = new Map<string, CatalogueRow>(Object.entries(ROWS)).get(id);
  const what = row?.attack ?? id;
  if (row?.notYet !== undefined) return { id, what, mark: 'open', because: row.notYet };
  const own = outcomes.filter(({ rows }) => rows.includes(id));
  if (own.length === 0) return { id, what, mark: 'open', because: 'no test ran' };
  const failed = own.filter(({ passed }) => !passed);
  if (failed.length === 0) return { id, what, mark: 'pass', because: `${own.length} tests` };
  const [first] = failed;
  return { id, what, mark: 'FAIL', because: `${failed.length} of ${own.length}: ${first?.name}` };
}

/** An incident passes with its own tests and all the rows that it is made of. */
export function judgeIncident(id: keyof typeof INCIDENTS, findings: Findings): Judged {
  const own = judgeRow(id, findings);
  const parts = INCIDENTS[id].map((part) => judgeRow(part, findings));
  const mark = worst([own, ...parts].map((judged) => judged.mark));
  const bad = [own, ...parts].find((judged) => judged.mark === mark);
  const because = mark === 'pass' ? [id, ...INCIDENTS[id]].join(' ') : `${bad?.id}: ${bad?.because}`;
  return { id, what: own.what, mark, because };
}

/** The table of goals. */
export function judgeGoals(findings: Findings): readonly JudgedGoal[] {
  return GOALS.map(({ goal, figures, rows }) => {
    const judged = figures.map((figure) => judgeFigure(figure, findings));
    const marks = rowsOf(rows).map(
      (id) => (isIncident(id) ? judgeIncident(id, findings) : judgeRow(id, findings)).mark,
    );
    const passed = marks.filter((mark) => mark === 'pass').length;
    const onRows = rows.length === 0 ? [] : [`${passed} of ${marks.length} rows`];
    return {
      goal,
      target: [...judged.map(({ target }) => target), ...(rows.length === 0 ? [] : [`${rows.join(' ')} pass`])].join(
        '; ',
      ),
      measured: [...judged.map(({ measured }) => measured), ...onRows].join('; '),
      mark: worst([...judged.map(({ mark }) => mark), ...marks]),
    };
  });
}

function judgeFigure(figure: Figure, { figures, quick }: Findings): Omit<JudgedGoal, 'goal'> {
  const { combined, atMost, atLeast, longOnly, quick: quickly }: Bound = FIGURES[figure];
  const least = quick ? (quickly ?? atLeast) : atLeast;
  const bounds = [least === undefined ? '' : `≥ ${least}`, atMost === undefined ? '' : `≤ ${atMost}`].filter(Boolean);
  const target = `${figure} ${least === atMost ? `= ${least}` : bounds.join(', ')}`;
  const values = figures.get(figure);
  if (values === undefined) {
    const excused = quick && longOnly === true;
    return { target, measured: excused ? 'long run only' : 'not measured', mark: excused ? 'pass' : 'open' };
  }
  const value = combined === 'sum' ? values.reduce((sum, one) => sum + one, 0) : Math.max(...values);
  const met = (least === undefined || value >= least) && (atMost === undefined || value <= atMost);
  return { target, measured: `${Math.round(value * 100) / 100}`, mark: met ? 'pass' : 'FAIL' };
}

function rowsOf(rows: readonly string[]): readonly string[] {
  return rows.flatMap((id) => (id === 'I*' ? Object.keys(INCIDENTS) : [id]));
}

export function isIncident(id: string): id is keyof typeof INCIDENTS {
  return id in INCIDENTS;
}

function worst(marks: readonly Mark[]): Mark {
  return marks.includes('FAIL') ? 'FAIL' : marks.includes('open') ? 'open' : 'pass';
}
