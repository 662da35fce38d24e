/** Checkout calls during which a gateway dies, and what must have become of them. */

import assert from 'node:assert/strict';
import type { CheckoutStep } from '../../../src/checkouts/attempts.ts';
import type { KeyedOperation } from '../../../src/checkouts/operations.ts';
import { assertKept, insist, insistUntilCut } from './agent.ts';
import type { Ground, Site } from './ground.ts';
import { asked, callFor, KEYED_OPERATIONS, type KeyedCall, read } from './keyed-call.ts';

/**
 * Where a gateway dies: at a step of its own, or while the backend has the call, before or after it
 * acts.
 */
export type DeathPoint = Exclude<CheckoutStep, 'after_read'> | AtBackend;
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
  const gateway = await site.start({ at, signal: 'SIGKILL' });
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
