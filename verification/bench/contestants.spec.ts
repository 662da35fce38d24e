import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Contestant, SUITES } from './contestant.ts';
import { CONTESTANTS, chosen } from './contestants.ts';
import { chooseCores } from './cores.ts';
import { startLoad } from './load.ts';
import { entriesOfSources, type Started, setStage } from './stage.ts';

/** A limit for a busy machine, milliseconds. */
const IN_TIME = 240_000;

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
      signal: AbortSignal.timeout(IN_TIME),
      profile: undefined,
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
    const signal = AbortSignal.timeout(IN_TIME);
    const options = { cores: chooseCores(), signal, profile: undefined, entries: entriesOfSources() };
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

describe('the choice of contestants', () => {
  it('has each id once, and each process in one suite', () => {
    assert.equal(new Set(CONTESTANTS.map(({ id }) => id)).size, CONTESTANTS.length);
    const suites = new Map<string, string>();
    for (const { id, suite, process: name = id } of CONTESTANTS) {
      assert.equal(suites.get(name) ?? suite, suite, id);
      suites.set(name, suite);
    }
  });

  it('selects all of them by default', () =>
    assert.deepEqual(chosen({ suites: undefined, only: undefined }), CONTESTANTS));

  for (const suite of SUITES)
    it(`selects the whole suite ${suite} and no other contestant`, () => {
      const ids = chosen({ suites: [suite], only: undefined }).map(({ id }) => id);
      assert.ok(ids.length >= 2);
      assert.deepEqual(
        ids,
        CONTESTANTS.filter((one) => one.suite === suite).map(({ id }) => id),
      );
    });

  it('selects single ones', () =>
    assert.deepEqual(
      chosen({ suites: undefined, only: ['sdk-call-5', 'free-redis'] }).map(({ id }) => id),
      ['free-redis', 'sdk-call-5'],
    ));

  it('takes each gateway beside an earlier one, in a process of its own, and no peers', () =>
    assert.deepEqual(
      chosen({ suites: ['challenge'], only: undefined, before: 'earlier.mjs' }).map(({ id, process: name }) => [
        id,
        name,
      ]),
      [
        ['challenge', undefined],
        ['challenge-before', 'challenge-before'],
      ],
    ));

  for (const [what, choice, message] of [
    ['unknown', { suites: undefined, only: ['other'] }, /other is none of free-redis, /],
    ['of another suite', { suites: ['a2a'], only: ['recipe'] }, /leave no contestant/],
  ] as const)
    it(`refuses one that is ${what}`, () => assert.throws(() => chosen(choice), { message }));
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
