/** Checkout calls during which a gateway dies, and what must have become of them. */

import assert from 'node:assert/strict';
import type { KeyedOperation } from '../../../src/checkouts/operations.ts';
import type { CheckoutStep } from '../../../src/checkouts/steps.ts';
import { assertKept, insist, insistUntilCut } from './agent.ts';
import { asked, type Errand, errandFor, KEYED_OPERATIONS, read } from './errand.ts';
import type { Ground, Site } from './ground.ts';

/**
 * Where a gateway dies: at a step of its own, or while the merchant has the call and has not acted
 * yet, or has.
 */
export type Place = Exclude<CheckoutStep, 'after_read'> | AtMerchant;
type AtMerchant = 'unacted' | 'acted';

/** A call during which the gateway dies. */
export interface Death<At extends Place = Place> {
  readonly operation: KeyedOperation;
  readonly at: At;
}

/** What the agent and the merchant must see of a death. */
interface Fate {
  /** Whether the agent is told to wait until the lease of the dead one ends. */
  readonly waits: boolean;
  /** Whether the answer was kept already. */
  readonly kept: boolean;
  /** How often the merchant is asked to do it. */
  readonly asked: number;
}

/** Every operation, before and after the merchant acts: all of them fit into one death. */
export const AT_MERCHANT = KEYED_OPERATIONS.flatMap((operation) =>
  (['unacted', 'acted'] as const).map((at): Death<AtMerchant> => ({ operation, at })),
);

/**
 * What becomes of it: the merchant looks at no key, so what moves money is read back instead of
 * asked again.
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

/** Starts a gateway that dies at this step of the errand. */
export async function dieAt(errand: Errand, site: Site, at: CheckoutStep): Promise<void> {
  const gateway = await site.start({ at, signal: 'SIGKILL' });
  await insistUntilCut(errand, site.baseUrl);
  assert.deepEqual(await gateway.ended, { code: null, signal: 'SIGKILL' }, gateway.output());
}

/**
 * Starts a gateway that dies while the merchant has calls of every operation. @returns what the
 * agents wanted, one for each of AT_MERCHANT
 */
export async function dieAtMerchant(ground: Ground, site: Site): Promise<ReadonlyMap<Death, Errand>> {
  const { merchant: backend } = ground;
  const gateway = await site.start();
  const errands = new Map<Death, Errand>();
  const arrivals: Promise<unknown>[] = [];
  for (const death of AT_MERCHANT) {
    const errand = await errandFor(ground, death.operation);
    errands.set(death, errand);
    backend.misbehave({ kind: 'hang', acts: death.at === 'acted' }, errand.aim);
    arrivals.push(backend.arrived(errand.aim));
  }
  const cut = [...errands.values()].map((errand) => insistUntilCut(errand, site.baseUrl));
  await Promise.all(arrivals);
  await gateway.kill();
  await Promise.all(cut);
  return errands;
}

/**
 * The agent of a gateway that died insists elsewhere with the same key: it must have happened once,
 * and have one answer.
 * @returns what asked it to come again
 */
export async function comeBack(
  ground: Ground,
  errand: Errand,
  { kept, asked: times }: Pick<Fate, 'kept' | 'asked'>,
  baseUrl: string,
): Promise<readonly string[]> {
  const { answer, before } = await insist(errand, baseUrl);
  assert.equal(answer.status, errand.sessionId === undefined ? 201 : 200, answer.text);
  assert.equal(answer.headers['idempotent-replayed'], kept ? 'true' : undefined);
  assertDone(ground, errand, times);
  const reads = read(ground, errand);
  await assertKept(errand, answer, baseUrl);
  assertDone(ground, errand, times);
  assert.equal(read(ground, errand), reads, 'what is kept is not read again');
  return before;
}

/** It has happened, once where that can be told, and the merchant was asked so often. */
export function assertDone(ground: Ground, errand: Errand, times: number): void {
  const { operation, sessionId } = errand;
  assert.equal(asked(ground, errand), times, `times that the merchant was asked for ${operation}`);
  if (sessionId === undefined) return;
  const session = ground.merchant.session(sessionId);
  const completed = operation === 'completeCheckoutSession';
  assert.equal(ground.merchant.orders(sessionId), completed ? 1 : 0);
  if (completed) assert.equal(session?.status, 'completed');
  if (operation === 'cancelCheckoutSession') assert.equal(session?.status, 'canceled');
  if (operation === 'updateCheckoutSession') assert.deepEqual(session?.items, [{ id: 'item_2', quantity: 1 }]);
}
