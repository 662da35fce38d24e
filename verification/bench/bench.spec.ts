import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Outcome, orderOfRound, runBench } from './bench.ts';
import { type Contestant, NotAvailable, SUITES } from './contestant.ts';
import { MEASURED_SUITES } from './goals.ts';
import { CannotMeasure, requireMeter } from './meter.ts';
import { readOptions } from './options.ts';
import { hpmLogged } from './peers/passthrough.ts';
import { entriesOfSources } from './stage.ts';

const TINY = { seconds: 0.2, rounds: 1, warmUpSeconds: 0.1, profile: undefined, entries: entriesOfSources() };
const IN_TIME = 30_000;

/** Whether this system can be measured; where it cannot, the reported reason is tested. */
const measurable = ((): boolean => {
  try {
    requireMeter();
    return true;
  } catch (error) {
    assert.ok(error instanceof CannotMeasure);
    return false;
  }
})();

function run(contestants: readonly Contestant[], changed: object = {}): Promise<Outcome> {
  return runBench(contestants, { ...TINY, ...changed }, AbortSignal.timeout(IN_TIME));
}

describe('the benchmark', () => {
  it('measures the CPU of a peer that answers, or fails with the reason', async () => {
    if (!measurable) {
      await assert.rejects(run([hpmLogged]), CannotMeasure);
      return;
    }
    const { rounds } = await run([hpmLogged]);
    const [turn] = rounds[0] ?? [];
    assert.equal(turn?.id, 'hpm-logged');
    // A proxied request costs no less than 5 us and no more than 50 ms anywhere.
    assert.ok(turn.cpuNs > 5_000 && turn.cpuNs < 50_000_000, `${turn.cpuNs} ns a request`);
    assert.ok(turn.perSecond > 10, `${turn.perSecond} a second`);
    assert.ok(turn.p50Ms > 0 && turn.p99Ms >= turn.p50Ms, `p50 ${turn.p50Ms} ms, p99 ${turn.p99Ms} ms`);
    assert.ok(turn.residentBytes > 20_000_000, `${turn.residentBytes} bytes`);
    assert.ok(turn.loadNs > 0);
  });

  it('takes the rounds of wide rows again with twice the turns, as often as it may', async () => {
    if (!measurable) return;
    const asked: number[] = [];
    const again = (rounds: Outcome['rounds']): ReadonlySet<string> => {
      asked.push(rounds.length);
      return new Set(['hpm-logged']);
    };
    const { rounds } = await run([hpmLogged], { again, repeats: 1 });
    assert.deepEqual(asked, [1]);
    assert.deepEqual(
      rounds.map((all) => all.map(({ id, turns }) => [id, turns])),
      [[['hpm-logged', 1]], [['hpm-logged', 2]]],
    );
  });

  it('goes on without a contestant that cannot be had', async () => {
    if (!measurable) return;
    const gone: Contestant = {
      ...hpmLogged,
      id: 'gone',
      async program() {
        throw new NotAvailable('not on this machine');
      },
    };
    const { rounds, missing } = await run([gone, hpmLogged]);
    assert.equal(missing.get('gone'), 'not on this machine');
    assert.deepEqual(
      rounds[0]?.map(({ id }) => id),
      ['hpm-logged'],
    );
  });

  const failing: readonly (readonly [string, Contestant, RegExp])[] = [
    [
      'answers another status than expected',
      { ...hpmLogged, question: { ...hpmLogged.question, expect: 402 } },
      /hpm-logged: answered 200, not 402/,
    ],
    [
      'answers something else with the right status',
      { ...hpmLogged, question: { ...hpmLogged.question, holds: 'the whole list' } },
      /hpm-logged: answered without "the whole list": \{"city":"Berlin"/,
    ],
    [
      'does not ask for the payment that it is to take',
      { ...hpmLogged, question: { ...hpmLogged.question, pays: true } },
      /hpm-logged: answered 200 without a challenge/,
    ],
    [
      'asks the facilitator too seldom',
      { ...hpmLogged, facilitatorCalls: { verify: 1, settle: 1 } },
      /hpm-logged: 0 calls of \/verify for \d+ answers, not \d+/,
    ],
    [
      // Port 9 has no listener: the proxy answers with errors, which the warm-up does not count.
      'fails by itself',
      {
        ...hpmLogged,
        program: (surroundings) => hpmLogged.program({ ...surroundings, backendUrl: 'http://127.0.0.1:9' }),
      },
      /hpm-logged: no answer at all/,
    ],
    [
      'does not start',
      { ...hpmLogged, program: async () => ({ args: ['-e', 'throw new Error("no bench today")'], env: {} }) },
      /hpm-logged: ended with 1[\s\S]*no bench today/,
    ],
  ];
  for (const [what, contestant, message] of failing)
    it(`fails when a contestant ${what}`, async () => {
      await assert.rejects(run([contestant]), measurable ? { message } : CannotMeasure);
    });

  it('ends at once when its signal aborts', async () => {
    const startedAt = performance.now();
    await assert.rejects(
      runBench([hpmLogged], { ...TINY, warmUpSeconds: 30 }, AbortSignal.timeout(1_000)),
      measurable ? /aborted|timeout/i : CannotMeasure,
    );
    assert.ok(performance.now() - startedAt < 10_000, 'it waited for the turn to end');
  });

  it('reverses every second round', () => {
    assert.deepEqual(
      [0, 1, 2, 3].map((round) => orderOfRound('ABC'.split(''), round).join('')),
      ['ABC', 'CBA', 'ABC', 'CBA'],
    );
  });
});

describe('the command line', () => {
  const usual = {
    seconds: 1,
    rounds: 6,
    warmUpSeconds: 10,
    starts: 1,
    repeats: 2,
    suites: SUITES,
    measured: MEASURED_SUITES,
    quick: false,
    only: undefined,
    before: undefined,
    profile: undefined,
  };
  const quick = { ...usual, seconds: 0.5, rounds: 4, warmUpSeconds: 2, repeats: 0, measured: [], quick: true };
  for (const [args, expected] of [
    [[], usual],
    [['--quick'], quick],
    [['--quick', '--seconds', '2', '--only', 'a,b'], { ...quick, seconds: 2, only: ['a', 'b'] }],
    [['--suite', 'a2a,mcp'], { ...usual, suites: ['mcp', 'a2a'], measured: [] }],
    [['--help'], 'help'],
    [['--suite', 'start'], { ...usual, suites: [], measured: ['start'] }],
    [['--warm-up', '3'], { ...usual, warmUpSeconds: 3 }],
    [['--starts', '5'], { ...usual, starts: 5 }],
    [['--before', 'dist/gateway.mjs'], { ...usual, measured: [], before: 'dist/gateway.mjs' }],
  ] as const)
    it(`reads [${args.join(' ')}]`, () => assert.deepEqual(readOptions(args), expected));

  for (const args of [
    ['--seconds', '0'],
    ['--seconds', '30.1'],
    ['--seconds', 'x'],
    ['--warm-up', '0'],
    ['--rounds', '0'],
    ['--rounds', '51'],
    ['--rounds', '1.5'],
    ['--starts', '0'],
    ['--starts', '21'],
    ['--suite', 'ftp'],
    ['--loud'],
  ])
    it(`refuses [${args.join(' ')}]`, () => assert.throws(() => readOptions(args)));
});
