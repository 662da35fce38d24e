import type { Request, Response } from 'express';
import { type DestinationStream, type Logger, pino } from 'pino';
import { pinoHttp } from 'pino-http';
import type { GatewayError } from '../../errors.ts';
import { isFailure, outcomeOf, resourceIn } from '../../pipeline/call.ts';
import type { Failure } from '../../pipeline/middleware/error-handler.ts';
import { accessRecordOf } from '../../server/http/access-record.ts';
import { type CallIds, callIdOf } from '../../server/http/request-id.ts';
import { rawPath } from '../../server/http/target.ts';
import type { CheckState } from '../health/readiness.ts';
import type { Tracing } from '../traces/tracing.ts';
import { throttled } from './log-throttle.ts';

export type Log = Logger;

/** Bytes collected before a write, so that a line costs no system call of its own. */
const BUFFER_BYTES = 4_096;
/** Longest time a line waits in that buffer, milliseconds. */
const FLUSH_EVERY_MS = 500;

/**
 * The log: JSON lines on stdout. Secrets are kept out by type, not by redaction: a serialiser names
 * the few fields that may be written, so a header that nobody thought of cannot appear. `secrets`
 * are the configured ones; they are the last net, for peers that quote what they were sent in their
 * error messages.
 */
export function createLog(level: string, secrets: readonly string[], destination?: DestinationStream): Log {
  const out =
    destination ?? pino.destination({ dest: 1, sync: false, minLength: BUFFER_BYTES, periodicFlush: FLUSH_EVERY_MS });
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: errorFields } },
    masked(out, secrets),
  );
}

/**
 * Replaces whatever secret stands in a line. Lines are JSON, so the secrets are looked for as JSON
 * spells them.
 */
function masked(out: DestinationStream & { flush?: () => void }, secrets: readonly string[]): DestinationStream {
  const spelled = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  return {
    write(line) {
      let safe = line;
      for (const secret of spelled) if (safe.includes(secret)) safe = safe.replaceAll(secret, '[secret]');
      out.write(safe);
    },
    ...(out.flush === undefined ? {} : { flush: () => out.flush?.() }),
  };
}

/** Longest path in a line, characters: a caller may send 32 KiB of it. */
const MAX_PATH = 512;
/**
 * One line a request: ids, method, path without query, status, milliseconds; of a message to an
 * adapter also channel, resource and what became of it (of a refused mandate why), and the trace it
 * belongs to. No headers in either direction. `shown`: what of a raw path may be written, where
 * that is not all of it.
 */
export function httpLog(log: Log, tracing: Pick<Tracing, 'traceId'>, shown: (path: string) => string = (path) => path) {
  const requestLine = (req: Request, res: Response, ms: number): object => {
    const path = shown(rawPath(req.originalUrl ?? req.url ?? '')).slice(0, MAX_PATH);
    return {
      requestId: res.getHeader('x-request-id'),
      callId: callIdOf(res),
      method: req.method,
      path,
      status: res.statusCode,
      ms,
      // What is undefined is not written.
      channel: accessRecordOf(res)?.channel,
      resource: resourceIn(res),
      outcome: outcomeOf(res),
      reason: accessRecordOf(res)?.reason,
      traceId: tracing.traceId(req, res),
    };
  };
  return pinoHttp<Request, Response>({
    logger: log,
    wrapSerializers: false,
    // The line is made from the two objects below alone: a child logger with the request in it
    // would cost as much again.
    quietResLogger: true,
    serializers: { req: () => undefined },
    genReqId: () => '',
    customAttributeKeys: { responseTime: 'ms' },
    customSuccessObject: (req, res, { ms }: { ms: number }) => requestLine(req, res, ms),
    customErrorObject: (req, res, _error, { ms }: { ms: number }) => requestLine(req, res, ms),
    // An answer that did not get out is worth a look, and so is a failure that JSON-RPC answers
    // with 200.
    customLogLevel: (_req, res) =>
      res.statusCode >= 500 || !res.writableFinished || isFailure(outcomeOf(res)) ? 'warn' : 'info',
    customErrorMessage: (_req, res) => (res.writableFinished ? 'request completed' : 'request aborted'),
  });
}

/**
 * Type, code and message, along the chain of causes; no stack and no own properties, where
 * libraries put what they sent.
 */
function errorFields(error: unknown, depth = 0): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, cause } = error;
  const code = (error as { code?: unknown }).code;
  return {
    type: name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(cause === undefined || depth >= 3 ? {} : { cause: errorFields(cause, depth + 1) }),
  };
}

/**
 * One line for each failure that is ours or the merchant's, ten a second of a kind; what a caller
 * did wrong is in the request's own line.
 */
export function failureLog(log: Log) {
  const spare = throttled((code, lines) => log.warn({ code, lines }, 'as many more of these in this second'));
  return (error: Failure, { requestId, callId }: CallIds): void => {
    const { code, status, cause, message } = error;
    if (status < 500) return;
    spare(code, () => {
      if (code === 'INTERNAL_ERROR') log.error({ requestId, callId, code, err: cause }, 'a bug');
      else log.warn({ requestId, callId, code, err: cause }, message);
    });
  };
}

/** One line for each payment that must wait for the reconciler's next look, ten a second. */
export function reconcileLog(log: Log) {
  const spare = throttled((_kind, lines) => log.warn({ lines }, 'as many more payments wait'));
  return (facts: { readonly payId?: string; readonly err: unknown }): void =>
    spare('reconcile', () => log.warn(facts, 'a payment waits to be reconciled'));
}

/** One line for each change of a component's health, with the cause that the answer leaves out. */
export function healthLog(log: Log) {
  return (component: string, state: CheckState, cause: string | undefined): void => {
    const level = state.status === 'pass' ? 'info' : 'warn';
    log[level]({ component, status: state.status, found: state.last, cause }, 'health');
  };
}

/**
 * One line for each refusal of bytes that never became a request: no other line would tell of them.
 */
export function refusalLog(log: Log) {
  return (refusal: GatewayError, requestId: string): void =>
    log.info({ requestId, code: refusal.code, reason: refusal.details?.reason }, 'not a request');
}
