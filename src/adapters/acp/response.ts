/** Turns the end of a checkout call into its response: the answer, or the error that is thrown. */

import type { Response } from 'express';
import type { AttemptEnd, FinalAnswer, KeyedEnd } from '../../checkouts/idempotency.ts';
import type { Access } from '../../checkouts/sessions.ts';
import { isObject, type Json } from '../../json/types.ts';
import { noteOutcome, type Outcome } from '../../server/http/access-record.ts';
import { sendText } from '../../server/http/respond.ts';
import type { Delivered } from './call.ts';
import { ACP_ERRORS, AcpError, type AcpErrorName, busy, retryAfter } from './error.ts';
import { callerRequestIdOf, legibleKeyOf } from './request.ts';

const JSON_HEAD = { 'content-type': 'application/json' } as const;

/**
 * Another client's session is missed in the same words as one that the backend does not have
 * (contract 7.3).
 * @throws AcpError checkout_session_not_found, service_unavailable
 */
export function assertAccess(access: Access): void {
  if (access.kind === 'absent') throw new AcpError('checkout_session_not_found');
  if (access.kind === 'unavailable') throw busy({ cause: access.cause });
}

/**
 * The answer of a call, however it ended (acp 12.4).
 * @throws AcpError for every end without an answer
 */
export function deliveredOf(end: KeyedEnd<AcpError> | AttemptEnd<AcpError>): Delivered {
  switch (end.kind) {
    case 'answered':
      return { answer: end.answer, from: end.from };
    case 'answer':
      return { answer: end.answer, from: 'backend' };
    case 'failed':
    case 'not_executed':
    case 'unknown':
      throw end.failure;
    case 'in_flight':
      throw new AcpError('idempotency_in_flight', { headers: retryAfter(end.retryAfterS) });
    case 'session_busy':
      throw new AcpError('checkout_session_conflict', {
        message: 'Another request on this checkout session is still running: repeat yours after Retry-After.',
        headers: retryAfter(end.retryAfterS),
      });
    case 'session_unknown':
      throw new AcpError('checkout_session_conflict', {
        message:
          'How an earlier request on this checkout session ended is not known, and the session cannot be read now: repeat yours after Retry-After.',
        headers: retryAfter(end.retryAfterS),
      });
    case 'conflict':
      throw new AcpError('idempotency_conflict');
    case 'foreign':
      throw new AcpError('processing_error', { cause: new Error("the backend opened another client's session") });
    case 'unavailable':
      throw busy({ cause: end.cause });
  }
}

/** Sends an answer in its own bytes. No header of the backend goes along. */
export function sendAnswer(res: Response, { answer, from }: Delivered): void {
  // To a connection that is gone nothing is delivered.
  if (!res.destroyed) noteOutcome(res, outcomeOf(answer, from));
  if (from === 'kept') res.setHeader('idempotent-replayed', 'true');
  send(res, answer.status, answer.body);
}

/**
 * Sends the Error document. After a head went out the only honest answer is a broken connection.
 */
export function sendFailure(res: Response, error: AcpError): void {
  noteOutcome(res, outcomeOfError(error.code));
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  send(res, error.status, JSON.stringify(error.document));
}

/** With the headers that every answer carries (acp 2.2): the caller's names for the request. */
function send(res: Response, status: number, body: string | Uint8Array): void {
  if (res.destroyed || res.headersSent) return;
  const { req } = res;
  const requestId = callerRequestIdOf(req);
  const key = req.method === 'POST' ? legibleKeyOf(req) : undefined;
  if (requestId !== undefined) res.setHeader('request-id', requestId);
  if (key !== undefined) res.setHeader('idempotency-key', key);
  // Sessions show who buys what.
  res.setHeader('cache-control', 'no-store');
  sendText(res, status, JSON_HEAD, body);
}

function outcomeOf({ status, body }: FinalAnswer, from: Delivered['from']): Outcome {
  if (status < 400) return from === 'kept' ? 'replayed' : 'delivered';
  // A refusal that is kept is one of our own Error documents.
  const document = JSON.parse(Buffer.from(body).toString()) as Json;
  return isObject(document) && isErrorName(document['code']) ? outcomeOfError(document['code']) : 'processing_error';
}

/** The outcome of a failure in log and metrics. */
export function outcomeOfError(code: AcpErrorName): Outcome {
  return code === 'internal_error' ? 'INTERNAL_ERROR' : code;
}

function isErrorName(name: unknown): name is AcpErrorName {
  return typeof name === 'string' && Object.hasOwn(ACP_ERRORS, name);
}
