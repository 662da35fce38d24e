import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Outcome, runBench } from './bench.ts';
import { type Contestant, NotAvailable } from './contestant.ts';
import { CONTESTANTS, chosen } from './contestants.ts';
import { startLoad } from './load.ts';
import { CannotMeasure, requireMeter } from './meter.ts';
import { hpmLogged } from './peers/passthrough.ts';
import { chooseCores } from './program.ts';
import { entriesOfSources, type Started, setStage } from './stage.ts';

const TINY = { seconds: 0.2, rounds: 1, warmUpSeconds: 0.1, entries: entriesOfSources() };
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
    assert.ok(turn.p50Ms > 0 && turn.p99Ms >= turn.p50Ms, `p50 ${turn.p50Ms} ms, p99 ${turn.p99Ms} ms`);
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
});

/** A limit for a busy machine, milliseconds. */
const CONTESTANTS_IN_TIME = 240_000;

/** The checked members of answers of MCP and A2A. */
interface RpcAnswer {
  readonly result: {
    readonly tools?: readonly { readonly name: string }[];
    readonly structuredContent?: object;
    readonly task?: { readonly status: object; readonly artifacts: readonly { readonly parts: readonly object[] }[] };
  };
}

/** Suites whose servers are compared member by member, and one contestant of each other program. */
const ASKED = CONTESTANTS.filter(
  ({ id, suite }) => ['mcp', 'a2a', 'passthrough'].includes(suite) || ['free-redis', 'recipe', 'body-64k'].includes(id),
);

describe('the contestants', () => {
  const ends = new AsyncDisposableStack();
  const answers = new Map<string, { readonly status: number; readonly text: string }>();

  before(async () => {
    const stage = await setStage(ends, {
      cores: chooseCores(),
      signal: AbortSignal.timeout(CONTESTANTS_IN_TIME),
      entries: entriesOfSources(),
    });
    for (const contestant of ASKED) answers.set(contestant.id, await ask(await stage.start(contestant)));
  });
  after(() => ends.disposeAsync());

  for (const { id, title, question } of ASKED)
    it(`${id} gives the right answer: ${title}`, () => {
      const { status, text } = answers.get(id) ?? { status: 0, text: '' };
      assert.equal(status, question.expect, text);
      assert.ok(text.includes(question.holds), text);
    });

  const resultOf = (id: string): RpcAnswer['result'] => {
    return (JSON.parse(answers.get(id)?.text ?? '') as RpcAnswer).result;
  };

  for (const [count, own, peer] of [
    [5, 'mcp-list-5', 'sdk-list-5'],
    [55, 'mcp-list-55', 'sdk-list-55'],
  ] as const)
    it(`${own} and ${peer} list the same ${count} tools`, () => {
      assert.equal(resultOf(own).tools?.length, count);
      assert.deepEqual(resultOf(own).tools, resultOf(peer).tools);
    });

  it('a call by MCP gets the same content from both servers', () => {
    assert.ok(resultOf('mcp-call-5').structuredContent);
    assert.deepEqual(resultOf('mcp-call-5').structuredContent, resultOf('sdk-call-5').structuredContent);
  });

  it('a message by A2A gets the same part from both servers', () => {
    const [own, peer] = [resultOf('a2a-send').task, resultOf('sdk-send-lean').task];
    assert.partialDeepStrictEqual(own?.status, { state: 'TASK_STATE_COMPLETED' });
    assert.deepEqual(own?.artifacts[0]?.parts, peer?.artifacts[0]?.parts);
  });
});

describe('paid calls', () => {
  it('bring proofs that the gateway takes, and ask the facilitator twice', async () => {
    await using ends = new AsyncDisposableStack();
    const signal = AbortSignal.timeout(CONTESTANTS_IN_TIME);
    const options = { cores: chooseCores(), signal, entries: entriesOfSources() };
    const stage = await setStage(ends, options);
    const { contestant, origin } = await stage.start(only('paid-http'));
    const load = startLoad(undefined);
    ends.defer(() => load.stop());
    const { requests } = await load.fire(
      { origin, question: contestant.question, seconds: 0.3, connections: 4 },
      signal,
    );
    assert.ok(requests > 0);
    assert.deepEqual(await stage.facilitatorCounts(), { verify: requests, settle: requests });
  });
});

function only(id: string): Contestant {
  const [contestant] = chosen({ suites: undefined, only: [id] });
  assert.ok(contestant);
  return contestant;
}

async function ask({ contestant, origin }: Started): Promise<{ status: number; text: string }> {
  const { path, headers, body } = contestant.question;
  const answer = await fetch(`${origin}${path}`, { method: 'POST', headers, body });
  const text = await answer.text();
  return { status: answer.status, text };
}
