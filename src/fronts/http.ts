import type { RequestHandler, Response } from 'express';
import { advanceCall, type ReceivedCall } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { readJsonBody } from '../http/body.ts';
import { readHeader, singleHeader } from '../http/headers.ts';
import { requestIdOf } from '../http/request-id.ts';
import type { JsonObject } from '../json/types.ts';
import type { CarriedProof } from '../payments/verifier.ts';
import { PAYMENT_SIGNATURE } from '../payments/x402/wire.ts';
import { httpPresenter } from './http-presenter.ts';

/** The HTTP front: `POST /api/resources/{id}/invoke` becomes a Call, the body is the input. */
export function httpFront(): RequestHandler {
  return async function httpFrontLayer(req, res, next) {
    const startedAt = performance.now();
    const left = leavingOf(res);
    const body = await readJsonBody(req, res);
    if (body.value === null || typeof body.value !== 'object' || Array.isArray(body.value))
      throw new GatewayError('INPUT_INVALID', {
        message: 'The body must be a JSON object: the input of the resource.',
      });
    const requestId = requestIdOf(res);
    advanceCall(res, {
      stage: 'received',
      requestId,
      channel: 'http',
      resourceId: String(req.params['id']),
      input: body.value as JsonObject,
      rawInput: body.bytes,
      proof: carriedProof(readHeader(req, PAYMENT_SIGNATURE)),
      idempotencyKey: carriedKey(readHeader(req, 'idempotency-key')),
      trace: { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') },
      presenter: httpPresenter(res, requestId),
      startedAt,
      left,
    });
    next();
  };
}

function carriedProof(header: ReturnType<typeof readHeader>): CarriedProof {
  if (header.kind === 'absent') return { kind: 'none' };
  return header.kind === 'single' ? { kind: 'header', value: header.value } : { kind: 'illegible' };
}

function carriedKey(header: ReturnType<typeof readHeader>): ReceivedCall['idempotencyKey'] {
  if (header.kind === 'absent') return undefined;
  return header.kind === 'single' ? header.value : { kind: 'illegible' };
}

/** Aborted when the connection closes before the answer was sent. */
function leavingOf(res: Response): AbortSignal {
  const leaving = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) leaving.abort();
  });
  return leaving.signal;
}
