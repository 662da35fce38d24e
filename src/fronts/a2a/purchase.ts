import type { JsonObject } from '../../json/types.ts';
import type { FollowUp, Order } from './message.ts';
import { badParams, type Refusal } from './refusal.ts';
import { newTask, type TaskNames } from './task.ts';
import { authorizationOf, type WaitingCalls } from './waiting.ts';

/** What a message buys, and how its task goes on when nothing is delivered. */
export interface Purchase {
  readonly kind: 'purchase';
  readonly task: TaskNames;
  readonly resourceId: string;
  readonly input: JsonObject;
  /** Lets the call wait for its payment under the id of its task; false when it cannot. Absent: nobody asked for that. */
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
 * Goes on with a call that waits for its payment. The call is taken out, so that two payments cannot both run, and put back bound
 * to the authorization that came: a buyer whose answer got lost sends the same message again and finds it, also after the death of
 * this process.
 */
export async function goOn(waiting: WaitingCalls, message: FollowUp): Promise<Found> {
  const { taskId, contextId = newTask().contextId } = message;
  try {
    return await taken(waiting, message);
  } catch (cause) {
    return { kind: 'unavailable', task: { taskId, contextId }, cause };
  }
}

/** @throws StoreError */
async function taken(waiting: WaitingCalls, { kind, taskId, contextId, proof }: FollowUp): Promise<Found> {
  const call = await waiting.take(taskId);
  if (call === undefined) return refused({ reason: 'TASK_NOT_FOUND' });
  const { authorization: bound, ...unbound } = call;
  const { resourceId, input } = call;
  const task = { taskId, contextId: call.contextId };
  const putBack = async (refusal: Refusal): Promise<Found> => {
    await waiting.park(taskId, call);
    return refused(refusal);
  };
  if (contextId !== undefined && contextId !== call.contextId)
    return putBack(badParams('message.contextId', 'must be that of the task'));
  if (kind === 'decline')
    return bound === undefined ? { kind: 'declined', task } : putBack({ reason: 'TASK_NOT_CANCELABLE' });
  const authorization = authorizationOf(proof);
  if (bound !== undefined && bound !== authorization) return putBack({ reason: 'TASK_NOT_FOUND' });
  const waits = await waiting.park(taskId, authorization === undefined ? call : { ...call, authorization });
  // A refused payment moves no money, so the next one may be another.
  const park = (): Promise<boolean> => waiting.park(taskId, unbound);
  return { kind: 'purchase', task, resourceId, input, park, waiting: waits };
}

function refused(refusal: Refusal): Found {
  return { kind: 'refused', refusal };
}
