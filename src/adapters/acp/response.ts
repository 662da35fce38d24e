import type { Response } from 'express';
import type { FinalAnswer } from '../../checkouts/idempotency.ts';
import { isObject, type Json } from '../../json/types.ts';
import { noteOutcome, type Outcome } from '../../server/http/access-record.ts';
import { sendText } from '../../server/http/respond.ts';
import type { Delivered } from './call.ts';
import { ACP_ERRORS, type AcpError, type AcpErrorName } from './error.ts';
import { callerRequestIdOf, legibleKeyOf } from './request.ts';

const JSON_HEAD = { 'content-type': 'application/json' } as const;

/**
 * Sends an answer of the merchant in its own bytes, or the refusal that was made of it. No header
 * of the merchant goes along.
 */
export function sendAnswer(res: Response, { answer, from }: Delivered): void {
  // To whom nothing can be said any more nothing is delivered.
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

/**
 * With what every answer carries (acp 2.2): the caller's names for the request, whatever became of
 * it.
 */
function send(res: Response, status: number, body: string | Uint8Array): void {
  if (res.destroyed || res.headersSent) return;
  const { req } = res;
  const requestId = callerRequestIdOf(req);
  const key = req.method === 'POST' ? legibleKeyOf(req) : undefined;
  if (requestId !== undefined) res.setHeader('request-id', requestId);
  if (key !== undefined) res.setHeader('idempotency-key', key);
  // Sessions tell who buys what.
  res.setHeader('cache-control', 'no-store');
  sendText(res, status, JSON_HEAD, body);
}

function outcomeOf({ status, body }: FinalAnswer, from: Delivered['from']): Outcome {
  if (status < 400) return from === 'kept' ? 'replayed' : 'delivered';
  // A refusal that is kept is one of our own Error documents.
  const document = JSON.parse(Buffer.from(body).toString()) as Json;
  return isObject(document) && isErrorName(document['code']) ? outcomeOfError(document['code']) : 'processing_error';
}

/** The outcome that log and metrics know a failure by. */
export function outcomeOfError(code: AcpErrorName): Outcome {
  return code === 'internal_error' ? 'INTERNAL_ERROR' : code;
}

function isErrorName(name: unknown): name is AcpErrorName {
  return typeof name === 'string' && Object.hasOwn(ACP_ERRORS, name);
}
