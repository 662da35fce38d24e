/** What a message buys: a new call, or the call of a parked task that its payment arrives for. */

import { canonicalJson } from '../../json/canonical.ts';
import type { JsonObject } from '../../json/types.ts';
import type { Exclusive } from '../../pipeline/call.ts';
import { withoutReserved } from '../../resources/prepare.ts';
import type { CallMessage, FollowUp } from './message.ts';
import { authorizationOf, isDeclined, type ParkedCall, type ParkedTask, type ParkedTasks } from './parked-task.ts';
import { badParams, type Refusal } from './refusal.ts';
import { newTask, type TaskNames } from './task.ts';

/** What a message buys, and how its task goes on when nothing is delivered. */
export interface Purchase {
  readonly kind: 'purchase';
  readonly task: TaskNames;
  readonly resourceId: string;
  readonly input: JsonObject;
  /** Parks the call; undefined when that is not possible. Absent: the caller did not ask for it. */
  readonly park?: () => Promise<string | undefined>;
  /** The call is parked already, and the same message can continue it once more. */
  readonly parked: boolean;
  /** It is parked and unclaimed: another payment may come when this one buys nothing. */
  readonly open: boolean;
  /** Claims the task for this one payment. */
  readonly exclusive?: Exclusive;
}

/** What a message leads to. `unavailable`: the store did not answer, so the call is unknown. */
export type Found =
  | Purchase
  | { readonly kind: 'unavailable'; readonly task: TaskNames; readonly cause: unknown }
  | { readonly kind: 'declined'; readonly task: TaskNames }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

const NOT_WAITING =
  'No such task waits here. If a payment was sent for it, send the order again with the same payment; else send a new message.';
/** The refusal for a task that another payment has claimed. */
export const TAKEN =
  'This task was declined, or has another payment. If that payment is yours, send it again; else send a new message.';

/** A new call, under a new task. It may be parked when the x402 extension is activated. */
export function newPurchase(tasks: ParkedTasks, { resourceId, input }: CallMessage, mayPark: boolean): Purchase {
  const task = newTask();
  const { contextId } = task;
  const park = (): Promise<string | undefined> => tasks.park({ contextId, resourceId, input });
  return { kind: 'purchase', task, resourceId, input, parked: false, open: false, ...(mayPark ? { park } : {}) };
}

/**
 * Continues a parked task. It is claimed for the authorization of the payment once the proof is
 * verified: two payments cannot both run, and a buyer whose answer got lost sends the same message
 * again and finds it, also after the death of this process.
 */
export async function continueTask(tasks: ParkedTasks, message: FollowUp): Promise<Found> {
  const { taskId, contextId = newTask().contextId } = message;
  try {
    return await findPurchase(tasks, message);
  } catch (cause) {
    return { kind: 'unavailable', task: { taskId, contextId }, cause };
  }
}

/** @throws StoreError */
async function findPurchase(tasks: ParkedTasks, message: FollowUp): Promise<Found> {
  const { kind, taskId } = message;
  const task = await tasks.find(taskId);
  if (task === undefined) return refused({ reason: 'TASK_NOT_FOUND', message: NOT_WAITING });
  const { holder, call } = task;
  const fault = contradiction(message, call);
  if (kind === 'decline') return fault === undefined ? decline(tasks, taskId, task) : refused(fault);
  const authorization = authorizationOf(message.proof);
  if (holder !== undefined && holder !== authorization) return refused({ reason: 'TASK_NOT_FOUND', message: TAKEN });
  if (fault !== undefined) return refused(fault);
  return {
    kind: 'purchase',
    task: { taskId, contextId: call.contextId },
    resourceId: call.resourceId,
    input: call.input,
    parked: true,
    open: holder === undefined,
    // A proof that cannot be read pays for nothing, and is refused before anything is claimed.
    ...(authorization === undefined ? {} : { exclusive: tasks.exclusive(task, authorization) }),
  };
}

/** @throws StoreError */
async function decline(tasks: ParkedTasks, taskId: string, task: ParkedTask): Promise<Found> {
  if (!isDeclined(task) && !(await tasks.decline(task))) return refused({ reason: 'TASK_NOT_CANCELABLE' });
  return { kind: 'declined', task: { taskId, contextId: task.call.contextId } };
}

/** Where a follow-up disagrees with its task. */
function contradiction({ contextId, call }: FollowUp, parked: ParkedCall): Refusal | undefined {
  if (contextId !== undefined && contextId !== parked.contextId)
    return badParams('message.contextId', 'must be that of the task');
  const agrees =
    call === undefined ||
    (call.resourceId === parked.resourceId &&
      canonicalJson(withoutReserved(call.input)) === canonicalJson(parked.input));
  return agrees ? undefined : badParams('message.parts[0].data', 'must be what was ordered, or left out');
}

function refused(refusal: Refusal): Found {
  return { kind: 'refused', refusal };
}
