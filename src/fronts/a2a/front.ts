import type { Request, RequestHandler, Response } from 'express';
import { advanceCall } from '../../call.ts';
import { GatewayError } from '../../errors.ts';
import { readJsonBytes } from '../../http/body.ts';
import { readHeader, singleHeader } from '../../http/headers.ts';
import { leavingOf } from '../../http/leaving.ts';
import { requestIdOf } from '../../http/request-id.ts';
import type { JsonObject } from '../../json/types.ts';
import type { ParkedCalls } from '../../payments/parked-calls.ts';
import { carriedKey, carriedProof } from '../carriers.ts';
import { errorText, type RpcId, resultText } from '../json-rpc/message.ts';
import { sendRpc } from '../json-rpc/send.ts';
import { goOn } from './follow-up.ts';
import type { FollowUp, Order, SendMessage } from './message.ts';
import { a2aPresenter, canceledTask, type MessageCall } from './presenter.ts';
import { type ErrorProfile, type Refusal, rpcError } from './refusal.ts';
import { readRequest } from './request.ts';
import { newTask } from './task.ts';
import { type WaitingCall, waitingCalls } from './waiting.ts';
import { activated, EXTENSIONS_HEADER, OLD_EXTENSIONS_HEADER } from './x402-keys.ts';

/** What the front is made of. */
export interface A2aParts {
  readonly errorProfile: ErrorProfile;
  /** Where calls wait for their payment, when a request activates the x402 extension. */
  readonly parked: ParkedCalls;
  /** How long they wait, milliseconds: as long as a challenge is good for. */
  readonly parkForMs: number;
}

/**
 * The A2A front: JSON-RPC 2.0 with the one method SendMessage (reference a2a.md). It answers what is no purchase; an order, or the
 * payment for a task that waits for it, goes on to the shared layers.
 */
export function a2aFront({ errorProfile, parked, parkForMs }: A2aParts): RequestHandler {
  const waiting = waitingCalls(parked, parkForMs);

  const refuse = (res: Response, id: RpcId | null, refusal: Refusal, status: 200 | 413 = 200): void =>
    sendRpc(res, status, errorText(id, rpcError(refusal, errorProfile, requestIdOf(res))));

  /** A new order; it waits for its payment when the x402 extension is activated. */
  const order = (res: Response, { resourceId, input }: Order, waits: boolean): Purchase => {
    const task = newTask();
    const call: WaitingCall = { contextId: task.contextId, resourceId, input };
    const park = waits ? { park: () => waiting.park(task.taskId, call) } : {};
    return { input, answered: { requestId: requestIdOf(res), resourceId, task, waiting: false, ...park } };
  };

  /** The call that a follow-up pays for; undefined when there is none, and then the follow-up is answered. */
  const followUp = async (res: Response, id: RpcId, message: FollowUp): Promise<Purchase | undefined> => {
    const requestId = requestIdOf(res);
    const task = { taskId: message.taskId, contextId: message.contextId ?? newTask().contextId };
    const continued = await goOn(waiting, message).catch((cause: unknown) => {
      const presenter = a2aPresenter(res, { id, requestId, resourceId: '', task, waiting: false });
      presenter.failed(new GatewayError('STORAGE_ERROR', { cause }), {});
      return undefined;
    });
    if (continued === undefined) return undefined;
    if (continued.kind === 'refused') {
      refuse(res, id, continued.refusal);
      return undefined;
    }
    if (continued.kind === 'declined') {
      const names = { taskId: message.taskId, contextId: continued.contextId };
      sendRpc(res, 200, resultText(id, canceledTask(names, requestId)));
      return undefined;
    }
    const { call, waits } = continued;
    const { contextId, resourceId, input } = call;
    const names = { taskId: message.taskId, contextId };
    const park = (): Promise<boolean> => waiting.park(message.taskId, call);
    return { input, answered: { requestId, resourceId, task: names, park, waiting: waits } };
  };

  return async function a2aFrontLayer(req, res, next) {
    const startedAt = performance.now();
    const left = leavingOf(res);
    const bytes = await readJsonBytes(req, res).catch((error: unknown) => {
      if (!(error instanceof GatewayError && error.code === 'PAYLOAD_TOO_LARGE')) throw error;
      refuse(res, null, { reason: 'PAYLOAD_TOO_LARGE' }, 413);
      return undefined;
    });
    if (bytes === undefined) return;
    const proof = carriedProof(req);
    const reading = readRequest(bytes, { version: readHeader(req, 'a2a-version'), proof }, errorProfile);
    if (reading.kind === 'refused') {
      refuse(res, reading.id, reading.refusal);
      return;
    }
    if (reading.kind === 'answered') {
      sendRpc(res, 200, resultText(reading.id, reading.result));
      return;
    }
    const { id, message } = reading;
    const extensions = activated(req.headers[EXTENSIONS_HEADER], req.headers[OLD_EXTENSIONS_HEADER]);
    if (extensions.length > 0) res.setHeader(EXTENSIONS_HEADER, extensions.join(', '));
    const purchase =
      message.kind === 'order' ? order(res, message, extensions.length > 0) : await followUp(res, id, message);
    if (purchase === undefined) return;
    receive(req, res, { id, ...purchase.answered }, message, purchase.input, { startedAt, left });
    next();
  };
}

/** What is bought, and how it is answered. */
interface Purchase {
  readonly input: JsonObject;
  readonly answered: Omit<MessageCall, 'id'>;
}

/** Puts the call where the shared layers find it. */
function receive(
  req: Request,
  res: Response,
  answered: MessageCall,
  { messageId, proof }: SendMessage,
  input: JsonObject,
  times: { readonly startedAt: number; readonly left: AbortSignal },
): void {
  advanceCall(res, {
    stage: 'received',
    requestId: answered.requestId,
    channel: 'a2a',
    resourceId: answered.resourceId,
    input,
    rawInput: undefined,
    proof,
    idempotencyKey: carriedKey(req),
    retryHint: `a2a:${messageId}`,
    trace: { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') },
    presenter: a2aPresenter(res, answered),
    ...times,
  });
}
