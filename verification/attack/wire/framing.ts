/** Plays a framing case and compares the requests that the gateway saw. */

import assert from 'node:assert/strict';
import type { SampleRequest } from '../../../spec/support/sample-backend.ts';
import { formOf } from '../forms.ts';
import { converse } from './conversation.ts';
import { EMPTY, type FramingCase, HOST, head, numbered } from './framing-case.ts';
import type { WireReading } from './http-bytes.ts';

/**
 * How long the end of a connection may take, and how long an open one is watched for another
 * answer, milliseconds.
 */
const END_MS = 3_000;

/**
 * Plays a case on a connection of its own, and checks the answers and the state of the connection.
 */
export async function playFraming(url: string, played: FramingCase, number: number): Promise<void> {
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
export function meantBy(cases: readonly FramingCase[]): readonly string[] {
  return cases
    .flatMap(({ meant = [] }, number) => meant.map((mark) => (mark === EMPTY ? mark : numbered(`${mark}#000`, number))))
    .sort();
}

/** The marks of the calls that reached the backend, sorted. */
export function marksOf(requests: readonly SampleRequest[]): readonly string[] {
  return requests.map(({ body }) => /^\{"mark":"([^"]*)"\}$/.exec(body.toString())?.[1] ?? body.toString()).sort();
}
