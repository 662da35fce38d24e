import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RoundFigures } from './bench.ts';
import { SUITES } from './contestant.ts';
import { CONTESTANTS } from './contestants.ts';
import { GOALS, type Goal, MEASURED_SUITES } from './goals.ts';
import { judge, type Met, missed, planOf, rowsOf, tooWide, valuesOf } from './verdict.ts';

const ROW: Goal = {
  id: 'row',
  suite: 'free',
  what: 'a row',
  of: 'own',
  against: 'peer',
  figure: 'cpu',
  goal: 0.5,
  stretch: 0.4,
};

describe('the verdict on a row', () => {
  const cases: readonly (readonly [string, Partial<Goal>, readonly number[], Met])[] = [
    ['at its goal', {}, [0.5, 0.5, 0.5, 0.5], 'yes'],
    ['over its goal', {}, [0.51, 0.51, 0.51, 0.51], 'no'],
    ['at its stretch goal', {}, [0.4, 0.4, 0.4, 0.4], 'stretch'],
    ['too wide, although its median is good', {}, [0.3, 0.4, 0.45, 0.5], 'no: too wide'],
    ['just narrow enough', {}, [0.45, 0.46, 0.48, 0.5], 'yes'],
    ['of too few rounds', {}, [0.3, 0.3, 0.3], 'no: too few rounds'],
    ['where more is better, at its goal', { goal: 8, stretch: 15, atLeast: true }, [8, 8, 8, 8], 'yes'],
    ['where more is better, below its goal', { goal: 8, stretch: 15, atLeast: true }, [7.9, 7.9, 7.9, 7.9], 'no'],
    ['where more is better, at its stretch goal', { goal: 8, stretch: 15, atLeast: true }, [15, 15, 15, 15], 'stretch'],
  ];
  for (const [what, changed, values, met] of cases)
    it(`${what}: ${met}`, () => assert.equal(judge({ ...ROW, ...changed }, { values }).met, met));

  it('without a goal it only tells', () => {
    const { goal: _, stretch: __, ...told } = ROW;
    assert.equal(judge(told, { values: [9, 1, 9, 1] }).met, '-');
  });

  it('what was not measured is not available', () => {
    assert.equal(judge(ROW, { missing: 'no nginx' }).met, 'not available');
    assert.equal(judge(ROW, { values: [] }).met, 'not available');
  });
});

describe('the exit rule', () => {
  const { goal: _, stretch: __, ...told } = ROW;
  const row = (goal: Goal, values: readonly number[]) => judge(goal, { values });

  for (const [what, one, lost] of [
    ['a met goal', row(ROW, [0.5, 0.5, 0.5, 0.5]), 0],
    ['a stretch goal', row(ROW, [0.1, 0.1, 0.1, 0.1]), 0],
    ['a missed goal', row(ROW, [0.6, 0.6, 0.6, 0.6]), 1],
    ['a wide row', row(ROW, [0.1, 0.2, 0.3, 0.4]), 1],
    ['a goal whose peer cannot be had', judge(ROW, { missing: 'no peer' }), 1],
    ['a row without a goal', row(told, [9, 9, 9, 9]), 0],
    ['a row without a goal whose peer cannot be had', judge(told, { missing: 'no peer' }), 0],
  ] as const)
    it(`${what} loses ${lost}`, () => assert.equal(missed([one]).length, lost));
});

describe('the values of a row', () => {
  it('are the ratios of each round: a slow round is slow for both', () => {
    const rounds = [
      [turn('own', 50), turn('peer', 100)],
      [turn('peer', 120), turn('own', 48)],
      [turn('own', 180), turn('peer', 300)],
    ];
    assert.deepEqual(valuesOf(ROW, rounds), [0.5, 0.4, 0.6]);
  });

  it('leave out rounds without the peer', () => {
    assert.deepEqual(valuesOf(ROW, [[turn('own', 50)], [turn('own', 50), turn('peer', 100)]]), [0.5]);
  });

  it('are those of the last rounds that both took, never of one there and of the other here', () => {
    const [first, second] = [
      [turn('own', 50), turn('other', 20), turn('peer', 100)],
      [turn('other', 30), turn('peer', 200)],
    ];
    const rounds = [first, second.map((one) => ({ ...one, turns: 2 }))];
    assert.deepEqual(valuesOf(ROW, rounds), [0.5]);
    assert.deepEqual(valuesOf({ ...ROW, of: 'other' }, rounds), [0.15]);
  });

  it('are times where the row says so', () => {
    const rounds = [
      [
        { ...turn('own', 1), p50Ms: 2, p99Ms: 12 },
        { ...turn('peer', 1), p50Ms: 4 },
      ],
    ];
    assert.deepEqual(valuesOf({ ...ROW, figure: 'p50' }, rounds), [0.5]);
    assert.deepEqual(valuesOf({ ...ROW, figure: 'tail' }, rounds), [6]);
  });

  it('name who takes turns again', () => {
    const narrow = [50, 51, 50, 51].map((us) => [turn('own', us), turn('peer', 100)]);
    const wide = [50, 60, 70, 80].map((us) => [turn('own', us), turn('peer', 100)]);
    assert.deepEqual(tooWide([ROW], narrow), new Set());
    assert.deepEqual(tooWide([ROW], wide), new Set(['own', 'peer']));
  });

  it('leave a wide row without a goal as it is, unless no row has one', () => {
    const { goal: _, stretch: __, ...told } = ROW;
    const rounds = [50, 60, 70, 80].map((us) => [turn('own', us), turn('other', 10), turn('peer', 100)]);
    assert.deepEqual(tooWide([told, { ...ROW, of: 'other' }], rounds), new Set());
    assert.deepEqual(tooWide([told], rounds), new Set(['own', 'peer']));
  });

  it('are missing with the reason of the contestant that cannot run', () => {
    const [row] = rowsOf([ROW], { rounds: [], missing: new Map([['peer', 'no peer here']]) });
    assert.equal(row?.missing, 'no peer here');
  });
});

describe('the table of goals', () => {
  const ids = new Set(CONTESTANTS.map(({ id }) => id));

  it('has each row once', () => assert.equal(new Set(GOALS.map(({ id }) => id)).size, GOALS.length));

  it('compares contestants that there are, within their suite', () => {
    const suites = new Map(CONTESTANTS.map(({ id, suite }) => [id, suite]));
    for (const { id, of, against, suite, figure } of GOALS) {
      if (figure === 'measured') continue;
      assert.ok(ids.has(of), id);
      assert.equal(suites.get(of), suite, id);
      if (against !== undefined) assert.equal(suites.get(against), suite, id);
    }
  });

  it('has a row for each suite', () => {
    for (const suite of [...SUITES, ...MEASURED_SUITES])
      assert.ok(
        GOALS.some((goal) => goal.suite === suite),
        suite,
      );
  });

  it('has a peer for each contestant of a quick run, and no other contestant', () => {
    const plan = planOf(options({ quick: true }));
    assert.deepEqual(
      plan.goals.map(({ id }) => id),
      GOALS.filter(({ quick }) => quick === true).map(({ id }) => id),
    );
    assert.equal(plan.contestants.length, 2 * plan.goals.length);
  });
});

function options(changed: object) {
  return {
    seconds: 1,
    rounds: 4,
    warmUpSeconds: 1,
    repeats: 0,
    suites: SUITES,
    measured: [],
    quick: false,
    only: undefined,
    before: undefined,
    ...changed,
  };
}

function turn(id: string, cpuUs: number): RoundFigures {
  return { id, turns: 1, cpuNs: cpuUs * 1_000, p50Ms: 1, p99Ms: 1, busy: 1 };
}
