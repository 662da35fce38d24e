/** Checkout calls during which a gateway dies, and what must have become of them. */

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { assertAcpError, rightHeaders } from '../../../spec/adapters/acp/testbed.ts';
import type { Answered } from '../../../spec/e2e/ask.ts';
import type { GatewayProcess } from '../../../spec/support/gateway-process.ts';
import type { CheckoutStep } from '../../../src/checkouts/attempts.ts';
import type { KeyedOperation } from '../../../src/checkouts/operations.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import { asked, callFor, type Ground, KEYED_OPERATIONS, type KeyedCall, read, type Site } from './ground.ts';

/**
 * Where a gateway dies: at a step of its own, or while the backend has the call, before or after it
 * acts.
 */
type DeathPoint = Exclude<CheckoutStep, 'after_read'> | AtBackend;
type AtBackend = 'unacted' | 'acted';

/** A call during which the gateway dies. */
export interface Death<At extends DeathPoint = DeathPoint> {
  readonly operation: KeyedOperation;
  readonly at: At;
}

/** What the agent and the backend must see of a death. */
interface Fate {
  /** Whether the agent must wait until the lease of the dead gateway ends. */
  readonly waits: boolean;
  /** Whether the answer was kept already. */
  readonly kept: boolean;
  /** How often the backend is called for it. */
  readonly asked: number;
}

/** Every operation, before and after the backend acts: one death covers all of them. */
export const AT_BACKEND = KEYED_OPERATIONS.flatMap((operation) =>
  (['unacted', 'acted'] as const).map((at): Death<AtBackend> => ({ operation, at })),
);

/**
 * The fate of a call: the backend ignores keys, so complete and cancel are read back, not sent
 * again.
 */
export function fateOf({ operation, at }: Death): Fate {
  const readsBack = operation === 'completeCheckoutSession' || operation === 'cancelCheckoutSession';
  switch (at) {
    case 'before_claim':
      return { waits: false, kept: false, asked: 1 };
    case 'after_finish':
      return { waits: false, kept: true, asked: 1 };
    case 'after_claim':
    case 'before_send':
      return { waits: true, kept: false, asked: 1 };
    case 'unacted':
      return { waits: true, kept: false, asked: 2 };
    case 'acted':
    case 'after_merchant':
    case 'after_own':
      return { waits: true, kept: false, asked: readsBack ? 1 : 2 };
  }
}

/** Starts a gateway that dies at this step of the call. */
export async function dieAt(call: KeyedCall, site: Site, at: CheckoutStep): Promise<void> {
  const gateway = await site.start(at);
  await insistUntilCut(call, site.baseUrl);
  assert.deepEqual(await gateway.ended, { code: null, signal: 'SIGKILL' }, gateway.output());
}

/**
 * Starts a gateway that dies while the backend has calls of every operation. @returns the calls,
 * one for each of AT_BACKEND
 */
export async function dieAtBackend(ground: Ground, site: Site): Promise<ReadonlyMap<Death, KeyedCall>> {
  const { backend } = ground;
  const gateway = await site.start();
  const calls = new Map<Death, KeyedCall>();
  const arrivals: Promise<unknown>[] = [];
  for (const death of AT_BACKEND) {
    const call = await callFor(ground, death.operation);
    calls.set(death, call);
    backend.misbehave({ kind: 'hang', acts: death.at === 'acted' }, call.aim);
    arrivals.push(backend.arrived(call.aim));
  }
  const cut = [...calls.values()].map((call) => insistUntilCut(call, site.baseUrl));
  await Promise.all(arrivals);
  await gateway.kill();
  await Promise.all(cut);
  return calls;
}

/**
 * The agent repeats the call of a dead gateway at another one with the same key: the call must have
 * happened once and have one answer. @returns the answers that asked for a retry
 */
export async function comeBack(
  ground: Ground,
  call: KeyedCall,
  { kept, asked: times }: Pick<Fate, 'kept' | 'asked'>,
  baseUrl: string,
): Promise<readonly string[]> {
  const { answer, before } = await insist(call, baseUrl);
  assert.equal(answer.status, call.sessionId === undefined ? 201 : 200, answer.text);
  assert.equal(answer.headers['idempotent-replayed'], kept ? 'true' : undefined);
  assertDone(ground, call, times);
  const reads = read(ground, call);
  await assertKept(call, answer, baseUrl);
  assertDone(ground, call, times);
  assert.equal(read(ground, call), reads, 'what is kept is not read again');
  return before;
}

/** The call has happened, once where that can be seen, and the backend was called `times` times. */
export function assertDone(ground: Ground, call: KeyedCall, times: number): void {
  const { operation, sessionId } = call;
  assert.equal(asked(ground, call), times, `calls of the backend for ${operation}`);
  if (sessionId === undefined) return;
  const session = ground.backend.session(sessionId);
  const completed = operation === 'completeCheckoutSession';
  assert.equal(ground.backend.orders(sessionId), completed ? 1 : 0);
  if (completed) assert.equal(session?.status, 'completed');
  if (operation === 'cancelCheckoutSession') assert.equal(session?.status, 'canceled');
  if (operation === 'updateCheckoutSession') assert.deepEqual(session?.items, [{ id: 'item_2', quantity: 1 }]);
}

/** How a call ended: the last answer, and the answers before it. */
interface Outcome {
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
async function send(call: KeyedCall, baseUrl: string, signal?: AbortSignal): Promise<Answered | undefined> {
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
async function insistUntilCut(call: KeyedCall, baseUrl: string): Promise<void> {
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

export async function startReplica(ground: Ground): Promise<GatewayProcess> {
  const site = await ground.site();
  const gateway = await site.start();
  for (const operation of KEYED_OPERATIONS) await insist(await callFor(ground, operation), site.baseUrl);
  return gateway;
}
