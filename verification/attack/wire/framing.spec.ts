import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { SampleRequest } from '../../../spec/support/sample-backend.ts';
import { attack, measured } from '../catalogue.ts';
import { formOf, openTarget, type Target } from '../target.ts';
import { FIELDS_TO_THE_MERCHANT, fieldNames } from './backend-fields.ts';
import { converse, EMPTY, type FramingCase, HOST, head, numbered, type WireReading } from './conversation.ts';
import { HEAD_CASES, LENGTH_CASES } from './framing-cases.ts';

const CASES = [...LENGTH_CASES, ...HEAD_CASES];

/** For cases without an answer. */
const RESET_AFTER_MS = 100;

describe('bytes that two parsers read differently', () => {
  let target: Target;
  before(async () => {
    target = await openTarget();
  });
  after(() => target.stop());

  for (const [number, played] of CASES.entries())
    attack('H1', played.name, async (t) => {
      await playFraming(target.url, played, number);
      measured(t, 'framing cases', 1);
    });

  attack('H1', 'the backend got exactly the intended calls, each as a new message of the gateway', async (t) => {
    await target.stillSells();
    const requests = target.backend.requests.filter(({ body }) => body.toString() !== '{"still":"sells"}');
    const [got, meant] = [marksOf(requests), meantBy(CASES)];
    const differing = got.filter((mark) => !meant.includes(mark)).length + (meant.length - new Set(got).size);
    measured(t, 'differing views of the backend', Math.abs(differing));
    assert.deepEqual(got, meant);
    for (const request of requests) {
      assert.deepEqual(
        fieldNames(request).filter((name) => !FIELDS_TO_THE_MERCHANT.has(name)),
        [],
      );
      assert.equal(request.headers['content-length'], String(request.body.length));
      assert.equal(request.headers['transfer-encoding'], undefined);
    }
  });

  attack(
    ['H1', 'P7'],
    'after any bytes, answered or not, a reset ends its own connection and nothing else',
    async () => {
      for (const [number, { sends }] of CASES.entries())
        for (const answers of [0, 1]) {
          const conversation = await converse(target.url);
          conversation.send(numbered(sends, number));
          await conversation.until(answers, RESET_AFTER_MS);
          conversation.reset();
        }
      await target.stillSells();
    },
  );
});

/**
 * How long the end of a connection may take, and how long an open one is watched for another
 * answer, milliseconds.
 */
const END_MS = 3_000;

/**
 * Plays a case on a connection of its own, and checks the answers and the state of the connection.
 */
async function playFraming(url: string, played: FramingCase, number: number): Promise<void> {
  const { answered, leaves, finishes = false, bodiless = [] } = played;
  const bytes = numbered(played.sends, number);
  const conversation = await converse(url, bodiless);
  try {
    for (const piece of played.byByte === true ? bytes : [bytes]) conversation.send(piece);
    if (finishes) conversation.finish();
    const more = leaves === 'closed' ? 1 : 0;
    const received = await conversation.until(answered.length + more, END_MS);
    assert.deepEqual(statuses(received), answered, received.rest.toString('latin1', 0, 200));
    for (const answer of received.answers) assert.ok(formOf(answer), `no known form: ${answer.body.toString()}`);
    assert.equal(received.rest.length, 0, 'bytes behind the last answer');
    assert.equal(conversation.ended() ? 'closed' : 'open', leaves);
    if (leaves === 'closed') return;
    conversation.send(head('GET /health HTTP/1.1', HOST));
    const { answers } = await conversation.until(answered.length + 1, END_MS);
    assert.equal(answers.length, answered.length + 1, 'the connection answers again');
    assert.equal(answers.at(-1)?.body.toString(), '{"status":"ok"}', 'each request has its own answer');
  } finally {
    conversation.close();
  }
}

function statuses({ answers }: WireReading): readonly number[] {
  return answers.map(({ status }) => status);
}

/** The marks of the calls that must reach the backend in these cases, sorted. */
function meantBy(cases: readonly FramingCase[]): readonly string[] {
  return cases
    .flatMap(({ meant = [] }, number) => meant.map((mark) => (mark === EMPTY ? mark : numbered(`${mark}#000`, number))))
    .sort();
}

/** The marks of the calls that reached the backend, sorted. */
function marksOf(requests: readonly SampleRequest[]): readonly string[] {
  return requests.map(({ body }) => /^\{"mark":"([^"]*)"\}$/.exec(body.toString())?.[1] ?? body.toString()).sort();
}
