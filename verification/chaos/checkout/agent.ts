/** An agent that sends a checkout call until it has an end. */

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { assertAcpError, rightHeaders } from '../../../spec/adapters/acp/testbed.ts';
import type { Answered } from '../../../spec/e2e/ask.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import type { KeyedCall } from './keyed-call.ts';

/** How a call ended: the last answer, and the answers before it. */
export interface Outcome {
  readonly answer: Answered;
  /** `status code` of every answer that asked for a retry, without those of a busy gateway. */
  readonly before: readonly string[];
}

/** How long an agent insists, milliseconds. */
const PATIENCE_MS = 45_000;
/** Between two attempts without a Retry-After, milliseconds. */
const PAUSE_MS = 100;
const SECOND_MS = 1_000;
/** The status of a busy gateway, which did not handle the call. */
const BUSY = 503;

/** Sends the call once. Undefined when no whole answer came. */
export async function send(call: KeyedCall, baseUrl: string, signal?: AbortSignal): Promise<Answered | undefined> {
  let answer: Answered;
  try {
    const response = await fetch(`${baseUrl}/acp${call.path}`, {
      method: 'POST',
      headers: rightHeaders('POST', { 'idempotency-key': call.key }),
      body: JSON.stringify(call.body),
      signal: signal ?? AbortSignal.timeout(PATIENCE_MS),
    });
    const { status, headers } = response;
    answer = { status, headers: Object.fromEntries(headers), text: await response.text() };
  } catch {
    return undefined;
  }
  // A session or the Error document: there is no other answer.
  if (answer.status < 300) assert.equal(typeof documentOf(answer)['id'], 'string', answer.text);
  else assertAcpError(answer, answer.status, codeOf(answer));
  assert.equal(answer.headers['idempotency-key'], call.key);
  return answer;
}

/** Sends the call until a gateway takes it. @throws Error when no whole answer came */
export async function ask(call: KeyedCall, baseUrl: string): Promise<Answered> {
  for (;;) {
    const answer = (await send(call, baseUrl)) ?? assert.fail('no answer');
    if (answer.status !== BUSY) return answer;
    await pause(answer);
  }
}

/** Sends the call until there is a last answer. @throws Error when none comes */
export async function insist(call: KeyedCall, baseUrl: string): Promise<Outcome> {
  const before: string[] = [];
  for (const ends = Date.now() + PATIENCE_MS; Date.now() < ends; ) {
    const answer = await send(call, baseUrl);
    if (answer !== undefined && isLast(answer)) return { answer, before };
    if (answer !== undefined && answer.status !== BUSY) before.push(summaryOf(answer));
    await pause(answer);
  }
  return assert.fail(`no end after ${PATIENCE_MS} ms: ${before.join(', ')}`);
}

/** Sends the call until an attempt gets no answer. A last answer fails the test. */
export async function insistUntilCut(call: KeyedCall, baseUrl: string): Promise<void> {
  for (;;) {
    const answer = await send(call, baseUrl);
    if (answer === undefined) return;
    assert.ok(!isLast(answer), `no gateway died: ${summaryOf(answer)}`);
    await pause(answer);
  }
}

/** `status code`, or the status alone when the answer is a session. */
export function summaryOf(answer: Answered): string {
  return answer.status < 300 ? String(answer.status) : `${answer.status} ${codeOf(answer)}`;
}

/**
 * The call gets this answer, byte for byte, at every gateway, and the key is refused for any other
 * body.
 */
export async function assertKept(call: KeyedCall, { status, text }: Answered, ...baseUrls: string[]): Promise<void> {
  for (const baseUrl of baseUrls) {
    const again = await ask(call, baseUrl);
    assert.deepEqual([again.status, again.text, again.headers['idempotent-replayed']], [status, text, 'true']);
    const other = { ...call, body: { ...call.body, ...OTHER_BODY[call.operation] } };
    assert.equal(summaryOf(await ask(other, baseUrl)), '422 idempotency_conflict');
  }
}

const OTHER_BODY = {
  createCheckoutSession: { currency: 'eur' },
  updateCheckoutSession: { order_notes: 'Ring twice.' },
  completeCheckoutSession: { order_notes: 'Ring twice.' },
  cancelCheckoutSession: { intent_trace: { reason_code: 'other' } },
} as const satisfies Record<KeyedCall['operation'], JsonObject>;

/** Neither a failure that is not kept nor an answer with Retry-After. */
function isLast({ status, headers }: Answered): boolean {
  return status < 500 && headers['retry-after'] === undefined;
}

/** Waits as long as Retry-After asks. */
function pause(answer: Answered | undefined): Promise<void> {
  const seconds = answer?.headers['retry-after'];
  return delay(seconds === undefined ? PAUSE_MS : SECOND_MS * Number(seconds));
}

function codeOf(answer: Answered): string {
  return String(documentOf(answer)['code']);
}

function documentOf({ text }: Answered): JsonObject {
  return JSON.parse(text) as JsonObject;
}
