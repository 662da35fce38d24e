/**
 * The A2A adapter: JSON-RPC 2.0 with the one method SendMessage (a2a 1). It answers what buys
 * nothing; a call, or the payment for a parked task, goes on to the pipeline.
 */

import type { Request, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { SharedSecrets } from '../../payments/pricing/buyer-token.ts';
import type { TaskClaims } from '../../payments/settlement/task-claims.ts';
import { type ReceivedCall, receiveCall } from '../../pipeline/call.ts';
import { readJsonBytes } from '../../server/http/body.ts';
import { readHeader, singleHeader } from '../../server/http/headers.ts';
import { callIdOf, requestIdOf } from '../../server/http/request-id.ts';
import { clientGone } from '../../server/http/respond.ts';
import type { AnswerBudget } from '../../server/load-shedding/answer-budget.ts';
import { carriedKey, carriedMandate, carriedProof } from '../extract-credentials.ts';
import { type RpcId, resultText } from '../json-rpc/message.ts';
import { sendRpc, sendRpcError } from '../json-rpc/send.ts';
import type { SendMessage } from './message.ts';
import { parkedTasks } from './parked-task.ts';
import { continueTask, newPurchase, type Purchase, TAKEN } from './purchase.ts';
import { type Refusal, rpcError } from './refusal.ts';
import { type Dialect, readRequest } from './request.ts';
import { a2aResponseWriter, canceledTask } from './response-writer.ts';
import { activated, EXTENSIONS_HEADER, OLD_EXTENSIONS_HEADER } from './x402-extension.ts';

interface A2aParts {
  readonly dialect: Dialect;
  /** Which payments have claimed parked tasks. */
  readonly claims: TaskClaims;
  /** Agrees on the secret under which the ids of parked tasks are sealed. */
  readonly secrets: SharedSecrets;
  readonly budget: AnswerBudget;
}

/** What is known of a purchase whose task could not be looked up. */
const UNKNOWN = { resourceId: '', input: {}, parked: true, open: false } as const;
const TASK_TAKEN: Refusal = { reason: 'TASK_NOT_FOUND', message: TAKEN };

export function a2aAdapter({ dialect, claims, secrets, budget }: A2aParts): RequestHandler {
  const tasks = parkedTasks(claims, secrets);
  const refuse = (res: Response, id: RpcId | null, refusal: Refusal, status: 200 | 413 = 200): void =>
    sendRpcError(res, status, id, rpcError(refusal, dialect.errorProfile, requestIdOf(res)));

  return async function receiveA2a(req, res, next) {
    const left = clientGone(res);
    const bytes = await readJsonBytes(req, res).catch(undefinedWhenTooLarge);
    // Only now: the proof is in the body, and a slow sender must not look like a caller who was
    // already waiting for a running call.
    const startedAt = performance.now();
    if (bytes === undefined) return refuse(res, null, { reason: 'PAYLOAD_TOO_LARGE' }, 413);
    const version = readHeader(req, 'a2a-version');
    const headers = { version, proof: carriedProof(req), mandate: carriedMandate(req) };
    const reading = readRequest(bytes, headers, dialect);
    if (reading.kind === 'refused') return refuse(res, reading.id, reading.refusal);
    const { id } = reading;
    if (reading.kind === 'answered') return sendRpc(res, 200, resultText(id, reading.result));
    const { message } = reading;
    const mayPark = dialect.continuation && activate(req, res);
    const found = message.kind === 'call' ? newPurchase(tasks, message, mayPark) : await continueTask(tasks, message);
    if (found.kind === 'refused') return refuse(res, id, found.refusal);
    const requestId = requestIdOf(res);
    if (found.kind === 'declined') return sendRpc(res, 200, resultText(id, canceledTask(found.task, requestId)));
    const purchase = found.kind === 'purchase' ? found : { ...UNKNOWN, task: found.task };
    const refuseTaken = (): void => refuse(res, id, TASK_TAKEN);
    receiveCall(res, {
      ...received(req, message, purchase),
      requestId,
      callId: callIdOf(res),
      responseWriter: a2aResponseWriter(res, { ...purchase, id, requestId, refuseTaken }, budget),
      startedAt,
      left,
    });
    // Thrown only now, so that the response writer of the call reports it as a task.
    if (found.kind === 'unavailable') throw new GatewayError('STORAGE_ERROR', { cause: found.cause });
    next();
  };
}

/** The one failure of a body that is answered as a JSON-RPC error (contract 7.2). */
function undefinedWhenTooLarge(error: unknown): undefined {
  if (error instanceof GatewayError && error.code === 'PAYLOAD_TOO_LARGE') return undefined;
  throw error;
}

/** Whether the request activates the x402 extension, which the answer repeats (A2A 1.0, 3.6.3). */
function activate(req: Request, res: Response): boolean {
  const extensions = activated(req.headers[EXTENSIONS_HEADER], req.headers[OLD_EXTENSIONS_HEADER]);
  if (extensions.length > 0) res.setHeader(EXTENSIONS_HEADER, extensions.join(', '));
  return extensions.length > 0;
}

function received(
  req: Request,
  { proof, mandate }: SendMessage,
  { resourceId, input, exclusive }: Pick<Purchase, 'resourceId' | 'input' | 'exclusive'>,
): Omit<ReceivedCall, 'requestId' | 'callId' | 'responseWriter' | 'startedAt' | 'left'> {
  return {
    stage: 'received',
    channel: 'a2a',
    resourceId,
    input,
    rawInput: undefined,
    proof,
    mandate,
    idempotencyKey: carriedKey(req),
    ...(exclusive === undefined ? {} : { exclusive }),
    trace: { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') },
  };
}
