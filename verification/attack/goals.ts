/** How the figures of several tests are combined. */
type Combination = 'sum' | 'greatest';

/** The bounds of a figure; `quick`: the lower bound in the short run. */
export interface Bound {
  readonly combined: Combination;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly quick?: number;
  /** Only the long run measures it. */
  readonly longOnly?: true;
}

/** All measured figures, by the name under which a test reports them. */
export const FIGURES = {
  'framing cases': { combined: 'sum', atLeast: 60 },
  'framing cases behind a proxy': { combined: 'sum', atLeast: 60, longOnly: true },
  'differing views of the backend': { combined: 'sum', atMost: 0 },
  'mutated requests': { combined: 'sum', atLeast: 20_000, quick: 2_000 },
  'answers outside the forms': { combined: 'sum', atMost: 0 },
  crashes: { combined: 'sum', atMost: 0 },
  'property cases': { combined: 'sum', atLeast: 100_000, quick: 10_000 },
  'hostile facilitator answers': { combined: 'sum', atLeast: 40 },
  'hostile backend answers': { combined: 'sum', atLeast: 40 },
  'unpaid deliveries': { combined: 'sum', atMost: 0 },
  'double settlements': { combined: 'sum', atMost: 0 },
  'spellings of one proof': { combined: 'greatest', atLeast: 20 },
  'copies of each spelling': { combined: 'greatest', atLeast: 100, quick: 5 },
  'settlements of one proof': { combined: 'greatest', atLeast: 1, atMost: 1 },
  'longest block of the event loop, ms': { combined: 'greatest', atMost: 50 },
} as const satisfies Readonly<Record<string, Bound>>;

export type Figure = keyof typeof FIGURES;

/**
 * A line of the table of goals: met when its figures are within their bounds and its rows have
 * passed.
 */
export interface Goal {
  readonly goal: string;
  readonly figures: readonly Figure[];
  readonly rows: readonly string[];
}

/** The goals of the catalogue, in its order. */
export const GOALS: readonly Goal[] = [
  {
    goal: 'raw-socket corpus',
    figures: ['framing cases', 'framing cases behind a proxy', 'differing views of the backend'],
    rows: ['H1', 'H2'],
  },
  { goal: 'mutated raw requests', figures: ['mutated requests', 'crashes', 'answers outside the forms'], rows: [] },
  { goal: 'property cases', figures: ['property cases'], rows: [] },
  {
    goal: 'hostile facilitators and backends',
    figures: ['hostile facilitator answers', 'hostile backend answers', 'unpaid deliveries', 'double settlements'],
    rows: ['X10', 'X11'],
  },
  {
    goal: 'proof spellings, at once',
    figures: ['spellings of one proof', 'copies of each spelling', 'settlements of one proof'],
    rows: ['X2'],
  },
  { goal: 'canary leak test', figures: [], rows: ['O7'] },
  { goal: 'ReDoS, bombs, depth', figures: ['longest block of the event loop, ms'], rows: ['B7', 'B11', 'B12'] },
  { goal: 'slow clients and floods', figures: [], rows: ['D1', 'D2'] },
  { goal: 'work without pay', figures: [], rows: ['X21'] },
  { goal: 'published attacks and incidents', figures: [], rows: ['I*'] },
];
