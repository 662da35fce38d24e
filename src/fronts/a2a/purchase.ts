import { randomUUID } from 'node:crypto';
import { withoutReserved } from '../../catalogue/prepare.ts';
import { canonicalJson } from '../../json/canonical.ts';
import type { JsonObject } from '../../json/types.ts';
import type { FollowUp, Order } from './message.ts';
import { badParams, type Refusal } from './refusal.ts';
import { newTask, type TaskNames } from './task.ts';
import { authorizationOf, DECLINED, type WaitingCall, type WaitingCalls } from './waiting.ts';

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
  const { kind, taskId } = message;
  const authorization = authorizationOf(message.proof);
  const claimant = kind === 'decline' ? DECLINED : (authorization ?? `unreadable:${randomUUID()}`);
  const claim = await waiting.claim(taskId, claimant);
  if (claim.kind === 'none') return refused({ reason: 'TASK_NOT_FOUND', message: NOT_WAITING });
  if (claim.kind === 'taken')
    return refused(
      kind === 'decline' ? { reason: 'TASK_NOT_CANCELABLE' } : { reason: 'TASK_NOT_FOUND', message: TAKEN },
    );
  const { call, again } = claim;
  const task = { taskId, contextId: call.contextId };
  // A refused payment moves no money, so the next one may be another; but what it was claimed for before stays with its claimant.
  const giveBack = async (): Promise<boolean> => !again && waiting.release(taskId, claimant);
  const fault = contradiction(message, call);
  if (fault !== undefined) {
    await giveBack();
    return refused(fault);
  }
  if (kind === 'decline') return { kind: 'declined', task };
  const { resourceId, input } = call;
  const purchase = { kind: 'purchase', task, resourceId, input, waiting: true } as const;
  if (authorization !== undefined) return { ...purchase, park: giveBack };
  // What nobody can read pays for nothing: the task waits on while its refusal is written.
  const waits = await giveBack();
  return { ...purchase, park: async () => waits };
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
const TAKEN =
  'This task was declined, or has another payment. If that payment is yours, send it again; else send a new message.';

function sameOrder(order: NonNullable<FollowUp['order']>, call: WaitingCall): boolean {
  return (
    order.resourceId === call.resourceId && canonicalJson(withoutReserved(order.input)) === canonicalJson(call.input)
  );
}

function refused(refusal: Refusal): Found {
  return { kind: 'refused', refusal };
}
