import { canonicalJson } from '../../json/canonical.ts';
import type { JsonObject } from '../../json/types.ts';
import type { Exclusive } from '../../pipeline/call.ts';
import { withoutReserved } from '../../resources/prepare.ts';
import type { FollowUp, Order } from './message.ts';
import { authorizationOf, isDeclined, type ParkedTask, type ParkedTasks, type WaitingCall } from './parked-task.ts';
import { badParams, type Refusal } from './refusal.ts';
import { newTask, type TaskNames } from './task.ts';

/** What a message buys, and how its task goes on when nothing is delivered. */
export interface Purchase {
  readonly kind: 'purchase';
  readonly task: TaskNames;
  readonly resourceId: string;
  readonly input: JsonObject;
  /**
   * Lets the call wait for a payment, as a task with this id; undefined when it cannot. Absent:
   * nobody asked for that.
   */
  readonly wait?: () => Promise<string | undefined>;
  /** The call waits already, and the same message can go on with it once more. */
  readonly waiting: boolean;
  /** It waits, and no payment had it: another one may be brought when this one buys nothing. */
  readonly open: boolean;
  /** The task is for one payment. */
  readonly exclusive?: Exclusive;
}

/**
 * What a message leads to. `unavailable`: nobody knows what is bought, because the store did not
 * answer.
 */
export type Found =
  | Purchase
  | { readonly kind: 'unavailable'; readonly task: TaskNames; readonly cause: unknown }
  | { readonly kind: 'declined'; readonly task: TaskNames }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * A new order, under a task that was not there before. It may wait for its payment when the x402
 * extension is activated.
 */
export function newPurchase(waiting: ParkedTasks, { resourceId, input }: Order, mayWait: boolean): Purchase {
  const task = newTask();
  const { contextId } = task;
  const wait = (): Promise<string | undefined> => waiting.wait({ contextId, resourceId, input });
  return { kind: 'purchase', task, resourceId, input, waiting: false, open: false, ...(mayWait ? { wait } : {}) };
}

/**
 * Goes on with a task that waits for its payment. It is claimed for the authorization that came,
 * once its proof was verified: two payments cannot both run, and a buyer whose answer got lost
 * sends the same message again and finds it, also after the death of this process.
 */
export async function goOn(waiting: ParkedTasks, message: FollowUp): Promise<Found> {
  const { taskId, contextId = newTask().contextId } = message;
  try {
    return await found(waiting, message);
  } catch (cause) {
    return { kind: 'unavailable', task: { taskId, contextId }, cause };
  }
}

/** @throws StoreError */
async function found(waiting: ParkedTasks, message: FollowUp): Promise<Found> {
  const { kind, taskId } = message;
  const task = await waiting.find(taskId);
  if (task === undefined) return refused({ reason: 'TASK_NOT_FOUND', message: NOT_WAITING });
  const fault = contradiction(message, task.call);
  if (kind === 'decline') return fault === undefined ? declined(waiting, taskId, task) : refused(fault);
  const authorization = authorizationOf(message.proof);
  const { holder, call } = task;
  if (holder !== undefined && holder !== authorization) return refused({ reason: 'TASK_NOT_FOUND', message: TAKEN });
  if (fault !== undefined) return refused(fault);
  return {
    kind: 'purchase',
    task: { taskId, contextId: call.contextId },
    resourceId: call.resourceId,
    input: call.input,
    waiting: true,
    open: holder === undefined,
    // What nobody can read pays for nothing, and is refused before anything is claimed.
    ...(authorization === undefined ? {} : { exclusive: waiting.exclusive(task, authorization) }),
  };
}

/** @throws StoreError */
async function declined(waiting: ParkedTasks, taskId: string, task: ParkedTask): Promise<Found> {
  if (!isDeclined(task) && !(await waiting.decline(task))) return refused({ reason: 'TASK_NOT_CANCELABLE' });
  return { kind: 'declined', task: { taskId, contextId: task.call.contextId } };
}

/** What a message says of its task that is not so. */
function contradiction({ contextId, order }: FollowUp, call: WaitingCall): Refusal | undefined {
  if (contextId !== undefined && contextId !== call.contextId)
    return badParams('message.contextId', 'must be that of the task');
  return order === undefined || sameOrder(order, call)
    ? undefined
    : badParams('message.parts[0].data', 'must be what was ordered, or left out');
}

const NOT_WAITING =
  'No such task waits here. If a payment was sent for it, send the order again with the same payment; else send a new message.';
/** Said of a task that another payment has. */
export const TAKEN =
  'This task was declined, or has another payment. If that payment is yours, send it again; else send a new message.';

function sameOrder(order: NonNullable<FollowUp['order']>, call: WaitingCall): boolean {
  return (
    order.resourceId === call.resourceId && canonicalJson(withoutReserved(order.input)) === canonicalJson(call.input)
  );
}

function refused(refusal: Refusal): Found {
  return { kind: 'refused', refusal };
}
