import type { Request, Response } from 'express';
import { traceIdOf } from '../../backend/trace-context.ts';
import { currentCall } from '../../pipeline/call.ts';
import type { StepName } from '../../pipeline/middleware/timed.ts';
import { singleHeader } from '../../server/http/headers.ts';

/** Counts of spans. */
type SpanLosses = Readonly<Record<'queue_full' | 'not_taken', number>>;

/** Follows requests through the gateway, for a collector of traces or for nobody. */
export interface Tracing {
  /** A call enters a middleware. Undefined when nobody is told. */
  readonly entered: ((res: Response, layer: StepName) => void) | undefined;
  /** The trace that a request belongs to, 32 hex digits; undefined when it belongs to none. */
  traceId(req: Request, res: Response): string | undefined;
  /** A request is over. */
  closed(req: Request, res: Response): void;
  /**
   * Spans of this process that the collector does not have: the queue was full, or it did not take
   * them.
   */
  lost(): SpanLosses;
  /**
   * Hands over what waits. False: the collector did not take it in time, and may still be waited
   * for.
   */
  close(): Promise<boolean>;
}

/** No collector: what a caller says of his trace goes on to the merchant and into the log. */
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

/**
 * What the caller said of his trace: in the words of his protocol once they are read, before that
 * in the head of the request.
 */
export function traceOf(
  req: Request,
  res: Response,
): { readonly traceparent: string | undefined; readonly tracestate: string | undefined } {
  const call = currentCall(res);
  if (call !== undefined) return call.trace;
  return { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') };
}
