/** Sends the prepared request of a funded call to the backend and classifies its answer. */

import type { Readable } from 'node:stream';
import type { RequestHandler, Response } from 'express';
import { type BackendAnswer, BackendError, classify, type Exchange } from '../../backend/exchange.ts';
import { relayedHeaders } from '../../backend/header-policy.ts';
import type { ToldByBackend } from '../../errors.ts';
import type { Json } from '../../json/types.ts';
import type { DeliveryRecorder } from '../../payments/delivery/delivery-recorder.ts';
import { passed } from '../../payments/settlement/attempt.ts';
import { isEncoded, isJsonType } from '../../server/http/headers.ts';
import { advanceCall, callAt, type FundedCall } from '../call.ts';
import { backendFailed } from '../steps/backend-failed.ts';
import { conditionsOf, requestToBackend } from '../steps/backend-request.ts';

/** A free call ends with its caller; a paid one runs to its end. */
export function forward(exchange: Exchange, deliveries: DeliveryRecorder): RequestHandler {
  return async function forwardMiddleware(_req, res, next) {
    const call = callAt(res, 'funded', 'answered');
    if (call.stage === 'answered') {
      // An earlier attempt got the backend's answer and kept it.
      next();
      return;
    }
    const { timeoutMs, maxResponseBytes, relayStatuses } = call.resource.backend;
    const paid = call.funding.kind === 'paid' ? call.funding : undefined;
    const atMost = Math.min(maxResponseBytes, call.responseWriter.maxAnswerBytes);
    const limits = {
      ...{ timeoutMs, maxResponseBytes: atMost },
      ...(paid === undefined ? { signal: call.left } : { sale: paid.record }),
    };
    if (paid !== undefined) passed('forwarding', paid.record.payId);
    const send = paid?.held?.exchange ?? exchange;
    try {
      const answer = await send(requestToBackend(call, paid?.record), limits);
      void call.authorization?.finish?.('commit');
      const outcome = classify(answer.status, relayStatuses.sold, conditionsOf(call, paid?.record) !== undefined);
      if (outcome.kind === 'deliver') {
        advanceCall(res, { ...call, stage: 'answered', answer, keptBefore: false });
        next();
        return;
      }
      const { status } = answer;
      const reason = outcome.kind === 'redirect' ? { reason: 'redirect_not_followed' } : {};
      const told = await toldByBackend(answer);
      throw await backendFailed(call, deliveries, { ...reason, status, requestWritten: true, told });
    } catch (thrown) {
      if (!(thrown instanceof BackendError)) throw thrown;
      const { reason, requestWritten } = thrown;
      await finishMandate(res, call, requestWritten);
      throw await backendFailed(call, deliveries, { reason, status: 0, requestWritten, cause: thrown });
    }
  };
}

/** A free call that certainly never left has used nothing up: its mandate is as good as before. */
async function finishMandate(res: Response, call: FundedCall, requestWritten: boolean): Promise<void> {
  const { authorization, ...unauthorized } = call;
  if (authorization?.finish === undefined) return;
  await authorization.finish(requestWritten ? 'commit' : 'release');
  if (!requestWritten) advanceCall(res, unauthorized);
}

/** Largest body, and largest headers beside it, bytes. */
const MOST_BYTES = 4_096;
/** Only the gateway asks for money, so the terms of a backend are not shown. */
const PAYMENT_REQUIRED_STATUS = 402;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a failed answer and lets go of its connection. Undefined: it has no JSON body within the
 * bound, or broke off. Never rejects.
 */
export async function toldByBackend(answer: BackendAnswer): Promise<ToldByBackend | undefined> {
  const { status, whole } = answer;
  const {
    'content-type': type = '',
    'content-encoding': encoding,
    'content-length': length = '0',
    'cache-control': _caching,
    ...others
  } = relayedHeaders(answer.headers, { free: false, status });
  const isTold = status >= 400 && status !== PAYMENT_REQUIRED_STATUS && isJsonType(type) && !isEncoded(encoding);
  if (!isTold || Number(length) > MOST_BYTES) {
    answer.body.destroy();
    return undefined;
  }
  try {
    const bytes = whole ?? (await readBounded(answer.body));
    if (bytes === undefined || bytes.byteLength > MOST_BYTES) return undefined;
    const body = JSON.parse(UTF_8.decode(bytes)) as Json;
    const size = JSON.stringify(others).length;
    return size > '{}'.length && size <= MOST_BYTES ? { status, headers: others, body } : { status, body };
  } catch {
    return undefined;
  }
}

/** Undefined: there is more. */
async function readBounded(body: Readable): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Uint8Array).byteLength;
    if (size > MOST_BYTES) return undefined;
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks);
}
