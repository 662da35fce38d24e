/**
 * The HTTP adapter: `POST /api/resources/{id}/invoke` becomes a call, its body the input; a GET of
 * it asks for the price.
 */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { isObject } from '../../json/json.ts';
import type { HeadRoom } from '../../payments/x402/wire/challenge.ts';
import { receiveCall } from '../../pipeline/call.ts';
import { callIdOf, requestIdOf } from '../../server/http/access-record.ts';
import { readJsonBody, singleHeader } from '../../server/http/request.ts';
import { clientGone } from '../../server/http/respond.ts';
import { carriedKey, carriedMandate, carriedProof } from '../extract-credentials.ts';
import type { PaymentPages } from './payment-page.ts';
import { httpResponseWriter } from './response-writer.ts';

/** Receives the calls of invoke paths. `room`: for the fields of payment and merchant in a head. */
export function httpAdapter(room: HeadRoom, pages: PaymentPages): RequestHandler {
  return async function receiveHttp(req, res, next) {
    const startedAt = performance.now();
    const left = clientGone(res);
    const body = await readJsonBody(req, res);
    if (!isObject(body.value))
      throw new GatewayError('INPUT_INVALID', {
        message: 'The body must be a JSON object: the input of the resource.',
      });
    const requestId = requestIdOf(res);
    const resourceId = String(req.params['id']);
    receiveCall(res, {
      stage: 'received',
      requestId,
      callId: callIdOf(res),
      channel: 'http',
      resourceId,
      input: body.value,
      rawInput: body.bytes,
      withoutInput: body.absent,
      proof: carriedProof(req),
      mandate: carriedMandate(req),
      idempotencyKey: carriedKey(req),
      trace: { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') },
      responseWriter: httpResponseWriter(res, requestId, { room, page: (challenge) => pages(resourceId, challenge) }),
      startedAt,
      left,
    });
    next();
  };
}

/**
 * Lets a GET without a proof on to the 402 of a POST without a body: some catalogues ask so, and
 * take 405 for "not paid". The next route answers 405 to every other GET. `isSold`: whether a
 * resource has a price over HTTP.
 */
export function asksForPrice(isSold: (resourceId: string) => boolean): RequestHandler {
  return function asksForPrice(req, res, next) {
    if (!isSold(String(req.params['id'])) || carriedProof(req).kind !== 'none') {
      next('route');
      return;
    }
    res.setHeader('allow', 'POST');
    next();
  };
}
