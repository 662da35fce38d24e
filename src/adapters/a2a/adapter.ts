/**
 * The A2A adapter: JSON-RPC 2.0 with the one method SendMessage (a2a 1). A call goes on to the
 * pipeline; the adapter answers every other request.
 */

import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { receiveCall } from '../../pipeline/call.ts';
import { callIdOf, requestIdOf } from '../../server/http/access-record.ts';
import { readHeader, readJsonBytes, singleHeader } from '../../server/http/request.ts';
import { clientGone } from '../../server/http/respond.ts';
import type { AnswerBudget } from '../../server/limits/load-shedding.ts';
import { carriedKey, carriedMandate, carriedProof } from '../extract-credentials.ts';
import { type RpcId, resultText, sendRpc, sendRpcError } from '../json-rpc/message.ts';
import { type ErrorProfile, type Refusal, readRequest, rpcError } from './request.ts';
import { a2aResponseWriter } from './response-writer.ts';

export function a2aAdapter(errorProfile: ErrorProfile, budget: AnswerBudget): RequestHandler {
  const refuse = (res: Response, id: RpcId | null, refusal: Refusal, status: 200 | 413 = 200): void =>
    sendRpcError(res, status, id, rpcError(refusal, errorProfile, requestIdOf(res)));

  return async function receiveA2a(req, res, next) {
    const left = clientGone(res);
    const bytes = await readJsonBytes(req, res).catch(undefinedWhenTooLarge);
    // `startedAt` follows the body, which has the proof: a slow sender must not look like a caller
    // who already waited for a running call.
    const startedAt = performance.now();
    if (bytes === undefined) return refuse(res, null, { reason: 'PAYLOAD_TOO_LARGE' }, 413);
    const version = readHeader(req, 'a2a-version');
    const headers = { version, proof: carriedProof(req), mandate: carriedMandate(req) };
    const reading = readRequest(bytes, headers, errorProfile);
    if (reading.kind === 'refused') return refuse(res, reading.id, reading.refusal);
    const { id } = reading;
    if (reading.kind === 'answered') return sendRpc(res, 200, resultText(id, reading.result));
    const { resourceId, input, proof, mandate } = reading.message;
    const requestId = requestIdOf(res);
    receiveCall(res, {
      stage: 'received',
      requestId,
      callId: callIdOf(res),
      channel: 'a2a',
      resourceId,
      input,
      rawInput: undefined,
      proof,
      mandate,
      idempotencyKey: carriedKey(req),
      trace: { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') },
      responseWriter: a2aResponseWriter(res, { id, requestId, resourceId }, budget),
      startedAt,
      left,
    });
    next();
  };
}

/** Turns PAYLOAD_TOO_LARGE into undefined, for a JSON-RPC error (a2a 3); throws other errors. */
function undefinedWhenTooLarge(error: unknown): undefined {
  if (error instanceof GatewayError && error.code === 'PAYLOAD_TOO_LARGE') return undefined;
  throw error;
}
