/** An agent that sends a checkout call until it has an end. */

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { assertAcpError, rightHeaders } from '../../../spec/adapters/acp/testbed.ts';
import type { Answered } from '../../../spec/e2e/ask.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import type { Errand } from './errand.ts';

/** How an errand ended: the last answer, and what was said before it. */
export interface Told {
  readonly answer: Answered;
  /** `status code` of every answer that asked to come again, but of a gateway that was busy. */
  readonly before: readonly string[];
}

/** How long an agent insists, milliseconds. */
const PATIENCE_MS = 45_000;
/** Between two attempts when nobody says otherwise, milliseconds. */
const PAUSE_MS = 100;
const SECOND_MS = 1_000;
/** A gateway on a machine that has too much to do: it says nothing of the errand. */
const BUSY = 503;

/** Sends the errand once. Undefined when no whole answer came. */
export async function send(errand: Errand, baseUrl: string, signal?: AbortSignal): Promise<Answered | undefined> {
  let answer: Answered;
  try {
    const response = await fetch(`${baseUrl}/acp${errand.path}`, {
      method: 'POST',
      headers: rightHeaders('POST', { 'idempotency-key': errand.key }),
      body: JSON.stringify(errand.body),
      signal: signal ?? AbortSignal.timeout(PATIENCE_MS),
    });
    const { status, headers } = response;
    answer = { status, headers: Object.fromEntries(headers), text: await response.text() };
  } catch {
    return undefined;
  }
  // A session, or the Error document: nothing else is ever said.
  if (answer.status < 300) assert.equal(typeof documentOf(answer)['id'], 'string', answer.text);
  else assertAcpError(answer, answer.status, codeOf(answer));
  assert.equal(answer.headers['idempotency-key'], errand.key);
  return answer;
}

/** Sends the errand until a gateway takes it. @throws Error when no whole answer came */
export async function ask(errand: Errand, baseUrl: string): Promise<Answered> {
  for (;;) {
    const answer = (await send(errand, baseUrl)) ?? assert.fail('no answer');
    if (answer.status !== BUSY) return answer;
    await pause(answer);
  }
}

/** Sends the errand until there is a last answer. @throws Error when there is none for ever */
export async function insist(errand: Errand, baseUrl: string): Promise<Told> {
  const before: string[] = [];
  for (const ends = Date.now() + PATIENCE_MS; Date.now() < ends; ) {
    const answer = await send(errand, baseUrl);
    if (answer !== undefined && isLast(answer)) return { answer, before };
    if (answer !== undefined && answer.status !== BUSY) before.push(said(answer));
    await pause(answer);
  }
  return assert.fail(`no end after ${PATIENCE_MS} ms: ${before.join(', ')}`);
}

/** Sends the errand until an attempt is cut off. A last answer is the end of the test. */
export async function insistUntilCut(errand: Errand, baseUrl: string): Promise<void> {
  for (;;) {
    const answer = await send(errand, baseUrl);
    if (answer === undefined) return;
    assert.ok(!isLast(answer), `nobody died: ${said(answer)}`);
    await pause(answer);
  }
}

/** `status code`, or the status alone of an answer that is a session. */
export function said(answer: Answered): string {
  return answer.status < 300 ? String(answer.status) : `${answer.status} ${codeOf(answer)}`;
}

/**
 * From now on the errand gets this answer in these bytes wherever it is brought, and the key is
 * refused to any other body.
 */
export async function assertKept(errand: Errand, { status, text }: Answered, ...baseUrls: string[]): Promise<void> {
  for (const baseUrl of baseUrls) {
    const again = await ask(errand, baseUrl);
    assert.deepEqual([again.status, again.text, again.headers['idempotent-replayed']], [status, text, 'true']);
    const other = { ...errand, body: { ...errand.body, ...OTHER_BODY[errand.operation] } };
    assert.equal(said(await ask(other, baseUrl)), '422 idempotency_conflict');
  }
}

const OTHER_BODY = {
  createCheckoutSession: { currency: 'eur' },
  updateCheckoutSession: { order_notes: 'Ring twice.' },
  completeCheckoutSession: { order_notes: 'Ring twice.' },
  cancelCheckoutSession: { intent_trace: { reason_code: 'other' } },
} as const satisfies Record<Errand['operation'], JsonObject>;

/** Neither a failure that is not kept nor one that says when to come again. */
function isLast({ status, headers }: Answered): boolean {
  return status < 500 && headers['retry-after'] === undefined;
}

/** As long as he is asked to wait. */
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
