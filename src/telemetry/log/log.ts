/** The log: JSON lines on stdout, and the functions that write each kind of line. */

import type { Request, Response } from 'express';
import { type DestinationStream, type Logger, pino } from 'pino';
import { pinoHttp } from 'pino-http';
import type { GatewayError } from '../../errors.ts';
import { isFailure, outcomeOf, resourceIn } from '../../pipeline/call.ts';
import type { Failure } from '../../pipeline/middleware/error-handler.ts';
import { accessRecordOf, type CallIds, idsOf } from '../../server/http/access-record.ts';
import { rawPath } from '../../server/http/request.ts';
import { isoTime } from '../../time/time.ts';
import type { CheckState } from '../health/monitor.ts';
import type { Tracing } from '../traces/tracing.ts';
import { standardOutput } from './standard-output.ts';

export type Log = Logger;

/** Longest path in a line, characters: a caller may send 32 KiB of it. */
const MAX_PATH = 512;

/**
 * Secrets are kept out by type: a serialiser names the few fields that may be written, so an
 * unexpected header cannot appear. `secrets`: the configured ones, which are masked as well,
 * because a peer may quote them in an error message. The list is read for each line: it may grow.
 */
export function createLog(
  level: string,
  secrets: readonly string[] | MaskedSecrets,
  destination?: DestinationStream,
): Log {
  const lost = (lines: number): void => log.error({ lost: lines }, 'log lines were lost: nothing read them');
  const out = destination ?? standardOutput(lost);
  const log = pino(
    { level, base: null, timestamp: () => `,"time":"${isoTime()}"`, serializers: { err: errorFields } },
    masked(out, secrets),
  );
  return log;
}

/** The secrets that a log masks, which become more with each configuration that is loaded. */
export class MaskedSecrets {
  /** Secrets as JSON spells them, the longest first: one may be the beginning of another. */
  spelled: readonly string[] = [];

  constructor(secrets: readonly string[]) {
    this.add(secrets);
  }

  /** Earlier ones stay masked: a call that is still running may bring them into a message. */
  add(secrets: readonly string[]): void {
    const added = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
    this.spelled = [...new Set([...this.spelled, ...added])].sort((one, other) => other.length - one.length);
  }
}

/** Replaces the secrets in a line. Lines are JSON, so secrets are compared as JSON spells them. */
function masked(
  out: DestinationStream & { flush?: () => void },
  secrets: readonly string[] | MaskedSecrets,
): DestinationStream {
  const hidden = secrets instanceof MaskedSecrets ? secrets : new MaskedSecrets(secrets);
  return {
    write(line) {
      let safe = line;
      for (const secret of hidden.spelled) if (safe.includes(secret)) safe = safe.replaceAll(secret, '[secret]');
      out.write(safe);
    },
    ...(out.flush === undefined ? {} : { flush: () => out.flush?.() }),
  };
}

/**
 * Writes one line a request: ids, method, path without query, status, milliseconds, trace; for a
 * message to an adapter also channel, resource, outcome, the reason of a refused mandate or
 * payment, and the paying transaction; `passed` for one that passes to the backend. No headers in
 * either direction. `shown`: makes the part of a raw path that may be written.
 */
export function httpLog(
  log: Log,
  tracing: Pick<Tracing, 'traceId'>,
  shown: (path: string, res: Response) => string = (path) => path,
) {
  const requestLine = (req: Request, res: Response, ms: number): object => {
    const record = accessRecordOf(res);
    return {
      ...idsOf(res),
      method: req.method,
      path: shown(rawPath(req.originalUrl ?? req.url ?? ''), res).slice(0, MAX_PATH),
      status: res.statusCode,
      ms,
      // Undefined fields are not written.
      channel: record?.channel,
      passed: record?.passed,
      resource: resourceIn(res),
      outcome: outcomeOf(res),
      reason: record?.reason,
      backend: record?.backend?.code,
      operation: record?.backend?.operation,
      transaction: record?.transaction,
      refusal: record?.refusal,
      leftOut: record?.leftOut,
      traceId: tracing.traceId(req, res),
    };
  };
  return pinoHttp<Request, Response>({
    logger: log,
    wrapSerializers: false,
    // The line is made from the two objects below alone: a child logger with the request in it
    // doubles the cost.
    quietResLogger: true,
    serializers: { req: () => undefined },
    genReqId: () => '',
    customAttributeKeys: { responseTime: 'ms' },
    customSuccessObject: (req, res, { ms }: { ms: number }) => requestLine(req, res, ms),
    customErrorObject: (req, res, _error, { ms }: { ms: number }) => requestLine(req, res, ms),
    customLogLevel: (_req, res) => (isTrouble(res) ? 'warn' : 'info'),
    customSuccessMessage: (_req, res) => messageOf(res),
    customErrorMessage: (_req, res) => messageOf(res),
  });
}

/** An aborted answer is a warning, and so is a failure that JSON-RPC answers with 200. */
function isTrouble(res: Response): boolean {
  return res.statusCode >= 500 || !res.writableFinished || isFailure(outcomeOf(res));
}

/** The message of the line of a request. */
function messageOf({ writableFinished }: Response): string {
  return writableFinished ? 'request completed' : 'request aborted';
}

/**
 * Type, code and message, along the chain of causes; no stack, and no own properties, in which
 * libraries keep what they sent.
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
 * One line for each failure of the gateway or the backend, ten a second of a kind. A caller's
 * mistake is in the request's own line.
 */
export function failureLog(log: Log) {
  const throttle = throttled((code, lines) => log.warn({ code, lines }, 'as many more of these in this second'));
  return (error: Failure, { requestId, callId }: CallIds): void => {
    const { code, status, cause, message } = error;
    if (status < 500) return;
    throttle(code, () => {
      if (code === 'INTERNAL_ERROR') log.error({ requestId, callId, code, err: cause }, 'a bug');
      else log.warn({ requestId, callId, code, err: cause }, message);
    });
  };
}

/** One line for each upgrade that is over, in the words of the line of a request. */
export function logUpgrade(
  log: Log,
  target: string,
  facts: { readonly requestId: string; readonly end: string },
): void {
  const path = rawPath(target).slice(0, MAX_PATH);
  log.info({ ...facts, method: 'GET', path, passed: true }, 'upgrade completed');
}

/** One line for each payment that waits for the next round of the reconciler, ten a second. */
export function reconcileLog(log: Log) {
  const throttle = throttled((_kind, lines) => log.warn({ lines }, 'as many more payments wait'));
  return (facts: { readonly payId?: string; readonly err: unknown }): void =>
    throttle('reconcile', () => log.warn(facts, 'a payment waits to be reconciled'));
}

/** One line for each change of a component's health, with the cause, which no answer shows. */
export function healthLog(log: Log) {
  return (component: string, state: CheckState, cause: string | undefined): void => {
    const level = state.status === 'pass' ? 'info' : 'warn';
    log[level]({ component, status: state.status, found: state.last, cause }, 'health');
  };
}

/** One line for each refusal of bytes that are no request: they have no request line. */
export function refusalLog(log: Log) {
  return (refusal: GatewayError, requestId: string): void =>
    log.info({ requestId, code: refusal.code, reason: refusal.details?.reason }, 'not a request');
}

/** Lines of one kind in a second; the others of that second become one line with their number. */
export const LINES_A_SECOND = 10;
const SECOND_MS = 1_000;
/** Bound of the kinds in memory. They are words of the code, so it is never reached. */
const MAX_KINDS = 1_000;

/** The clock of a throttle. */
export interface ThrottleTime {
  now(): number;
  /** Calls `then` once after so many milliseconds; does not keep the process alive. */
  after(ms: number, then: () => void): void;
}

const REAL: ThrottleTime = {
  now: () => performance.now(),
  after: (ms, then) => void setTimeout(then, ms).unref(),
};

/**
 * Writes the first lines of each kind, and calls `heldBack` at the end of the second with the
 * number of the others: a fault that logs a line for every call would hide the lines that explain
 * it.
 */
export function throttled(
  heldBack: (kind: string, lines: number) => void,
  time: ThrottleTime = REAL,
): (kind: string, write: () => void) => void {
  const kinds = new Map<string, { since: number; written: number; held: number }>();
  const close = (kind: string): void => {
    const held = kinds.get(kind)?.held ?? 0;
    kinds.delete(kind);
    heldBack(kind, held);
  };
  return function throttle(kind, write) {
    const now = time.now();
    const known = kinds.get(kind);
    if (known === undefined || (known.held === 0 && now - known.since >= SECOND_MS)) {
      if (kinds.size < MAX_KINDS) kinds.set(kind, { since: now, written: 1, held: 0 });
      write();
    } else if (known.written < LINES_A_SECOND) {
      known.written += 1;
      write();
    } else {
      if (known.held === 0) time.after(Math.max(0, known.since + SECOND_MS - now), () => close(kind));
      known.held += 1;
    }
  };
}
