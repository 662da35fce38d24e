/** The port of tracing, and its form without a collector. */

import type { Request, Response } from 'express';
import { traceIdOf } from '../../backend/trace-context.ts';
import { currentCall } from '../../pipeline/call.ts';
import type { StepName } from '../../pipeline/middleware/timed.ts';
import { singleHeader } from '../../server/http/headers.ts';

/** Counts of spans. */
type SpanLosses = Readonly<Record<'queue_full' | 'not_taken', number>>;

export interface Tracing {
  /** A call enters a middleware. Undefined without a collector. */
  readonly entered: ((res: Response, step: StepName) => void) | undefined;
  /** The trace that a request belongs to, 32 hex digits; undefined when it belongs to none. */
  traceId(req: Request, res: Response): string | undefined;
  /** A request is over. */
  closed(req: Request, res: Response): void;
  /** Spans that the collector does not have: the queue was full, or it did not take them. */
  lost(): SpanLosses;
  /** Sends the waiting spans. False: the collector did not take them in time. */
  close(): Promise<boolean>;
}

/** No collector: the caller's trace goes on to the backend and into the log. */
export const PASSED_ON: Tracing = {
  entered: undefined,
  traceId(req, res) {
    const { traceparent } = traceOf(req, res);
    return traceparent === undefined ? undefined : traceIdOf(traceparent);
  },
  closed: () => undefined,
  lost: () => ({ queue_full: 0, not_taken: 0 }),
  close: async () => true,
};

/** The caller's trace: of the message once it is read, before that of the request's head. */
export function traceOf(
  req: Request,
  res: Response,
): { readonly traceparent: string | undefined; readonly tracestate: string | undefined } {
  const call = currentCall(res);
  if (call !== undefined) return call.trace;
  return { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') };
}
