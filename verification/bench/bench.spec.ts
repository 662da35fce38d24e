import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { orderOfRound, runBench, type Turn } from './bench.ts';
import type { Contestant } from './contestant.ts';
import { CannotMeasure, requireMeter } from './meter.ts';
import { median, percentile } from './numbers.ts';
import { readOptions } from './options.ts';
import { expressJson } from './peers/express-json.ts';
import { hpmStreamed } from './peers/hpm-streamed.ts';
import { historyLine, standings, table } from './report.ts';

const TINY = { seconds: 0.2, rounds: 1, warmUpSeconds: 0.1, profile: undefined };
const IN_TIME = 20_000;

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

function run(contestants: readonly Contestant[]): Promise<readonly (readonly Turn[])[]> {
  return runBench(contestants, TINY, AbortSignal.timeout(IN_TIME));
}

describe('the benchmark', () => {
  it('measures the CPU of a peer that answers, or fails with the reason', async () => {
    if (!measurable) {
      await assert.rejects(run([hpmStreamed]), CannotMeasure);
      return;
    }
    const [turns = []] = await run([hpmStreamed]);
    const [turn] = turns;
    assert.equal(turn?.id, 'hpm-streamed');
    // A proxied request costs no less than 5 us and no more than 5 ms anywhere.
    assert.ok(turn.cpuNs > 5_000 && turn.cpuNs < 5_000_000, `${turn.cpuNs} ns a request`);
    assert.ok(turn.perSecond > 100, `${turn.perSecond} a second`);
    assert.ok(turn.p50Ms > 0 && turn.p99Ms >= turn.p50Ms, `p50 ${turn.p50Ms} ms, p99 ${turn.p99Ms} ms`);
    assert.ok(turn.residentBytes > 20_000_000, `${turn.residentBytes} bytes`);
  });

  const failing: readonly (readonly [string, Contestant, RegExp])[] = [
    [
      'answers another status than expected',
      { ...expressJson, question: { ...expressJson.question, expect: 402 } },
      /express: answered 200, not 402/,
    ],
    [
      'answers something else with the right status',
      { ...expressJson, question: { ...expressJson.question, holds: 'the whole list' } },
      /express: answered without "the whole list": \{"status":"ok"/,
    ],
    [
      // Port 1 has no listener, so the proxy answers every request with an error of its own.
      'fails by itself',
      {
        ...hpmStreamed,
        program: (surroundings) => hpmStreamed.program({ ...surroundings, backendUrl: 'http://127.0.0.1:1' }),
      },
      /hpm-streamed: answered 50\d, not 200/,
    ],
    [
      'does not start',
      { ...expressJson, program: async () => ({ args: ['-e', 'throw new Error("no bench today")'], env: {} }) },
      /express: ended with 1[\s\S]*no bench today/,
    ],
  ];
  for (const [what, contestant, message] of failing)
    it(`fails when a contestant ${what}`, async () => {
      await assert.rejects(run([contestant]), measurable ? { message } : CannotMeasure);
    });

  it('ends at once when its signal aborts', async () => {
    const startedAt = performance.now();
    await assert.rejects(
      runBench([expressJson], { ...TINY, warmUpSeconds: 30 }, AbortSignal.timeout(1_000)),
      measurable ? /aborted|timeout/i : CannotMeasure,
    );
    assert.ok(performance.now() - startedAt < 10_000, 'it waited for the turn to end');
  });
});

describe('the figures', () => {
  it('reverses every second round', () => {
    assert.deepEqual(
      [0, 1, 2, 3].map((round) => orderOfRound('ABC'.split(''), round).join('')),
      ['ABC', 'CBA', 'ABC', 'CBA'],
    );
  });

  it('computes the ratio of each round, then the median of the ratios', () => {
    // The machine is three times slower in the last round: a ratio of medians would not be 0.5
    // here.
    const rounds = [
      [turn('hpm-streamed', 50), turn('hpm-recipe', 100)],
      [turn('hpm-recipe', 120), turn('hpm-streamed', 48)],
      [turn('hpm-streamed', 180), turn('hpm-recipe', 300)],
    ];
    const [standing] = standings([hpmStreamed], rounds);
    assert.deepEqual(standing?.ratio, {
      against: 'hpm-recipe',
      median: 0.5,
      lowest: 0.4,
      highest: 0.6,
      goal: undefined,
    });
    assert.match(table([standing]), /hpm-streamed.*0\.50 \(0\.40-0\.60\)\s+hpm-recipe\s+-$/);
    const history = JSON.parse(historyLine([standing], { seconds: 2, rounds: 3 })) as { contestants: unknown[] };
    assert.equal(history.contestants.length, 1);
  });

  it('has no ratio without the peer', () => {
    assert.equal(standings([hpmStreamed], [[turn('hpm-streamed', 50)]])[0]?.ratio, undefined);
  });

  for (const [values, middle] of [
    [[3], 3],
    [[4, 1], 2.5],
    [[9, 1, 5], 5],
    [[], Number.NaN],
  ] as const)
    it(`the median of [${values}] is ${middle}`, () => assert.equal(median(values), middle));

  for (const [share, value] of [
    [0, 1],
    [0.5, 50],
    [0.99, 99],
    [1, 100],
  ] as const)
    it(`${share} of 1 to 100 lie at or below ${value}`, () =>
      assert.equal(
        percentile(
          Array.from({ length: 100 }, (_, at) => at + 1),
          share,
        ),
        value,
      ));
});

describe('the command line', () => {
  for (const [args, expected] of [
    [
      [],
      {
        seconds: 1,
        rounds: 8,
        suites: undefined,
        starts: true,
        only: undefined,
        before: undefined,
        profile: undefined,
      },
    ],
    [
      ['--quick'],
      {
        seconds: 0.5,
        rounds: 4,
        suites: undefined,
        starts: true,
        only: undefined,
        before: undefined,
        profile: undefined,
      },
    ],
    [
      ['--quick', '--seconds', '2', '--only', 'a,b'],
      {
        seconds: 2,
        rounds: 4,
        suites: undefined,
        starts: false,
        only: ['a', 'b'],
        before: undefined,
        profile: undefined,
      },
    ],
    [
      ['--suite', 'mcp,a2a'],
      {
        seconds: 1,
        rounds: 8,
        suites: ['mcp', 'a2a'],
        starts: false,
        only: undefined,
        before: undefined,
        profile: undefined,
      },
    ],
    [['--help'], 'help'],
    [
      ['--suite', 'start'],
      { seconds: 1, rounds: 8, suites: [], starts: true, only: undefined, before: undefined, profile: undefined },
    ],
    [
      ['--before', 'dist/gateway.mjs'],
      {
        seconds: 1,
        rounds: 8,
        suites: undefined,
        starts: true,
        only: undefined,
        before: 'dist/gateway.mjs',
        profile: undefined,
      },
    ],
  ] as const)
    it(`reads [${args.join(' ')}]`, () => assert.deepEqual(readOptions(args), expected));

  for (const args of [
    ['--seconds', '0'],
    ['--seconds', '30.1'],
    ['--seconds', 'x'],
    ['--rounds', '0'],
    ['--rounds', '51'],
    ['--rounds', '1.5'],
    ['--suite', 'ftp'],
    ['--loud'],
  ])
    it(`refuses [${args.join(' ')}]`, () => assert.throws(() => readOptions(args)));
});

function turn(id: string, cpuUs: number): Turn {
  return { id, cpuNs: cpuUs * 1_000, perSecond: 1, p50Ms: 1, p99Ms: 1, residentBytes: 1, busy: 1 };
}
