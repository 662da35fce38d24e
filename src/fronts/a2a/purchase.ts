import { randomUUID } from 'node:crypto';
import { canonicalJson } from '../../json/canonical.ts';
import type { JsonObject } from '../../json/types.ts';
import type { FollowUp, Order } from './message.ts';
import { badParams, type Refusal } from './refusal.ts';
import { newTask, type TaskNames } from './task.ts';
import { authorizationOf, type WaitingCall, type WaitingCalls, withoutReserved } from './waiting.ts';

/** What a message buys, and how its task goes on when nothing is delivered. */
export interface Purchase {
  readonly kind: 'purchase';
  readonly task: TaskNames;
  readonly resourceId: string;
  readonly input: JsonObject;
  /** Lets the call wait for a payment under the id of its task; false when it cannot. Absent: nobody asked for that. */
  readonly park?: () => Promise<boolean>;
  /** The call waits already, and the same message can go on with it once more. */
  readonly waiting: boolean;
}

/** What a message leads to. `unavailable`: nobody knows what is bought, because the store did not answer. */
export type Found =
  | Purchase
  | { readonly kind: 'unavailable'; readonly task: TaskNames; readonly cause: unknown }
  | { readonly kind: 'declined'; readonly task: TaskNames }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** A new order, under a task that was not there before. It may wait for its payment when the x402 extension is activated. */
export function newPurchase(waiting: WaitingCalls, { resourceId, input }: Order, mayWait: boolean): Purchase {
  const task = newTask();
  const { taskId, contextId } = task;
  const park = (): Promise<boolean> => waiting.park(taskId, { contextId, resourceId, input });
  return { kind: 'purchase', task, resourceId, input, waiting: false, ...(mayWait ? { park } : {}) };
}

/**
 * Goes on with a call that waits for its payment. It is claimed for the authorization that came: two payments cannot both run, and a
 * buyer whose answer got lost sends the same message again and finds it, also after the death of this process.
 */
export async function goOn(waiting: WaitingCalls, message: FollowUp): Promise<Found> {
  const { taskId, contextId = newTask().contextId } = message;
  try {
    return await claimed(waiting, message);
  } catch (cause) {
    return { kind: 'unavailable', task: { taskId, contextId }, cause };
  }
}

/** @throws StoreError */
async function claimed(waiting: WaitingCalls, message: FollowUp): Promise<Found> {
  const { kind, taskId, contextId, order } = message;
  const claimant = kind === 'decline' ? DECLINED : (authorizationOf(message.proof) ?? `unreadable:${randomUUID()}`);
  const claim = await waiting.claim(taskId, claimant);
  if (claim.kind === 'none') return refused({ reason: 'TASK_NOT_FOUND', message: NOT_WAITING });
  if (claim.kind === 'taken')
    return refused(
      kind === 'decline' ? { reason: 'TASK_NOT_CANCELABLE' } : { reason: 'TASK_NOT_FOUND', message: PAID_FOR },
    );
  const { call, again } = claim;
  // A refused payment moves no money, so the next one may be another; but what it was claimed for before stays with its claimant.
  const giveBack = async (): Promise<boolean> => !again && waiting.release(taskId, claimant);
  if (contextId !== undefined && contextId !== call.contextId) {
    await giveBack();
    return refused(badParams('message.contextId', 'must be that of the task'));
  }
  if (order !== undefined && !sameOrder(order, call)) {
    await giveBack();
    return refused(badParams('message.parts[0].data', 'must be what was ordered, or left out'));
  }
  const { resourceId, input } = call;
  const task = { taskId, contextId: call.contextId };
  if (kind === 'decline') return { kind: 'declined', task };
  return { kind: 'purchase', task, resourceId, input, park: giveBack, waiting: true };
}

/** Who declines claims the task, so that nobody pays for it any more. */
const DECLINED = 'declined';
const NOT_WAITING =
  'No such task waits here. If a payment was sent for it, send the order again with the same payment; else send a new message.';
const PAID_FOR = 'Another payment was brought for this task. Send the same one again, or a new message.';

function sameOrder(order: NonNullable<FollowUp['order']>, call: WaitingCall): boolean {
  return (
    order.resourceId === call.resourceId && canonicalJson(withoutReserved(order.input)) === canonicalJson(call.input)
  );
}

function refused(refusal: Refusal): Found {
  return { kind: 'refused', refusal };
}
