import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { SUITES } from './contestant.ts';
import { CONTESTANTS, chosen } from './contestants.ts';
import { chooseCores } from './cores.ts';
import { type Stage, type Started, setStage } from './stage.ts';

const IN_TIME = 60_000;

/** The checked members of answers of MCP and A2A. */
interface RpcAnswer {
  readonly result: {
    readonly tools?: readonly { readonly name: string }[];
    readonly structuredContent?: object;
    readonly task?: { readonly status: object; readonly artifacts: readonly { readonly parts: readonly object[] }[] };
  };
}

describe('the contestants', () => {
  const ends = new AsyncDisposableStack();
  const answers = new Map<string, { readonly status: number; readonly text: string }>();

  before(async () => {
    const stage = await setStage(ends, {
      cores: chooseCores(),
      signal: AbortSignal.timeout(IN_TIME),
      profile: undefined,
    });
    for (const contestant of CONTESTANTS) answers.set(contestant.id, await ask(await startedOn(stage, contestant.id)));
  });
  after(() => ends.disposeAsync());

  for (const { id, title, question } of CONTESTANTS)
    it(`${id} gives the right answer: ${title}`, () => {
      const { status, text } = answers.get(id) ?? { status: 0, text: '' };
      assert.equal(status, question.expect, text);
      assert.ok(text.includes(question.holds), text);
    });

  const resultOf = (id: string): RpcAnswer['result'] => {
    // The official MCP server answers the older revisions with one event of a stream.
    const text = (answers.get(id)?.text ?? '').replace(/^event: message\ndata: /, '');
    return (JSON.parse(text) as RpcAnswer).result;
  };

  for (const [count, own, peer] of [
    [5, 'mcp-list-5', 'sdk-list-5'],
    [55, 'mcp-list-55', 'sdk-list-55'],
    [5, 'mcp-list-5-legacy', 'sdk-list-5-legacy'],
  ] as const)
    it(`${own} and ${peer} list the same ${count} tools`, () => {
      assert.equal(resultOf(own).tools?.length, count);
      assert.deepEqual(resultOf(own).tools, resultOf(peer).tools);
    });

  it('a call by MCP gets the same content from both servers', () => {
    assert.ok(resultOf('mcp-call').structuredContent);
    assert.deepEqual(resultOf('mcp-call').structuredContent, resultOf('sdk-call').structuredContent);
  });

  it('a message by A2A gets the same part from both servers', () => {
    const [own, peer] = [resultOf('a2a-send').task, resultOf('sdk-send').task];
    assert.partialDeepStrictEqual(own?.status, { state: 'TASK_STATE_COMPLETED' });
    assert.deepEqual(own?.artifacts[0]?.parts, peer?.artifacts[0]?.parts);
  });
});

describe('the choice of contestants', () => {
  it('has each id once, and compares within a suite only', () => {
    const suiteOf = new Map(CONTESTANTS.map(({ id, suite }) => [id, suite]));
    assert.equal(suiteOf.size, CONTESTANTS.length);
    for (const { id, suite, against } of CONTESTANTS)
      if (against !== undefined) assert.equal(suiteOf.get(against.id), suite, id);
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
      chosen({ suites: undefined, only: ['sdk-call', 'free'] }).map(({ id }) => id),
      ['free', 'sdk-call'],
    ));

  it('takes each gateway beside an earlier one, and no peers', () =>
    assert.deepEqual(
      chosen({ suites: ['http'], only: undefined, before: 'earlier.mjs' }).map(({ id, against }) => [id, against?.id]),
      [
        ['free', 'free-before'],
        ['free-before', undefined],
        ['challenge', 'challenge-before'],
        ['challenge-before', undefined],
      ],
    ));

  for (const [what, choice, message] of [
    ['unknown', { suites: undefined, only: ['other'] }, /other is none of free, /],
    ['of another suite', { suites: ['a2a'], only: ['free'] }, /leave no contestant/],
  ] as const)
    it(`refuses one that is ${what}`, () => assert.throws(() => chosen(choice), { message }));
});

function startedOn(stage: Stage, id: string): Promise<Started> {
  const [contestant] = chosen({ suites: undefined, only: [id] });
  assert.ok(contestant);
  return stage.start(contestant);
}

/** Sends one request and ends the contestant. */
async function ask({ contestant, origin, program }: Started): Promise<{ status: number; text: string }> {
  const { path, headers, body } = contestant.question;
  const answer = await fetch(`${origin}${path}`, { method: 'POST', headers, body });
  const text = await answer.text();
  await program.stop();
  return { status: answer.status, text };
}
