import type { FollowUp } from './message.ts';
import { badParams, type Refusal } from './refusal.ts';
import { authorizationOf, type WaitingCall, type WaitingCalls } from './waiting.ts';

/** What a message about a waiting task leads to. */
export type Continued =
  /** `waits`: the same message can come again. */
  | { readonly kind: 'call'; readonly call: WaitingCall; readonly waits: boolean }
  | { readonly kind: 'declined'; readonly contextId: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/**
 * Goes on with a call that waits for its payment. The call is taken out, so that two payments cannot both run, and put back bound
 * to the authorization that came: a buyer whose answer got lost sends the same message again and finds it, also after the death of
 * this process. @throws StoreError
 */
export async function goOn(waiting: WaitingCalls, message: FollowUp): Promise<Continued> {
  const { taskId, contextId } = message;
  const call = await waiting.take(taskId);
  if (call === undefined) return refused({ reason: 'TASK_NOT_FOUND' });
  const putBack = async (refusal: Refusal): Promise<Continued> => {
    await waiting.park(taskId, call);
    return refused(refusal);
  };
  if (contextId !== undefined && contextId !== call.contextId)
    return putBack(badParams('message.contextId', 'must be that of the task'));
  const authorization = authorizationOf(message.proof);
  if (message.kind === 'decline')
    return call.authorization === undefined
      ? { kind: 'declined', contextId: call.contextId }
      : putBack({ reason: 'TASK_NOT_CANCELABLE' });
  if (call.authorization !== undefined && call.authorization !== authorization)
    return putBack({ reason: 'TASK_NOT_FOUND' });
  const waits = await waiting.park(taskId, authorization === undefined ? call : { ...call, authorization });
  const { authorization: _bound, ...unbound } = call;
  return { kind: 'call', call: unbound, waits };
}

function refused(refusal: Refusal): Continued {
  return { kind: 'refused', refusal };
}
