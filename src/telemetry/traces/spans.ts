import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Request, Response } from 'express';
import { traceIdOf, validTracestate } from '../../backend/trace-context.ts';
import { PAYMENT_CHANNEL } from '../../payments/steps.ts';
import { advanceCall, currentCall, isFailure, outcomeOf, resourceIn } from '../../pipeline/call.ts';
import type { StepName } from '../../pipeline/middleware/timed.ts';
import { accessRecordOf } from '../../server/http/access-record.ts';
import { requestIdOf } from '../../server/http/request-id.ts';
import { PASSED_ON, type Tracing, traceOf } from './tracing.ts';

/** Layers that wait for somebody; the others take microseconds. */
const STEPS: ReadonlySet<StepName> = new Set(['verify', 'settle', 'forward', 'conclude']);
/** Asked every few seconds by those who watch the pod. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready']);
/**
 * The one header field that the merchant is told of his parent span (W3C Trace Context, section
 * 3.2).
 */
const VERSION = '00';

/** One request on its way: a span for all of it, and one for the middleware that has it. */
interface Journey {
  readonly span: Span;
  readonly context: Context;
  /** What to add to the monotonic clock for milliseconds since the epoch. */
  readonly epoch: number;
  step: Span | undefined;
  payId: string | undefined;
}

/** The part of tracing that makes spans; who delivers them is somebody else's business. */
export function recordSpans(tracer: Tracer): Pick<Tracing, 'entered' | 'traceId' | 'closed'> & { close(): void } {
  const journeys = new WeakMap<Response, Journey>();
  /** The spans of settlements that run now, for the steps that the settlement announces. */
  const settling = new Map<string, Span>();

  const journeyOf = (req: Request, res: Response): Journey => {
    const known = journeys.get(res);
    if (known !== undefined) return known;
    const begun = begin(tracer, req, res);
    journeys.set(res, begun);
    return begun;
  };
  const leave = (journey: Journey, res: Response, at: number): void => {
    const { step, payId } = journey;
    if (step === undefined) return;
    const call = currentCall(res);
    if (call?.stage === 'answered') step.setAttribute('http.response.status_code', call.answer.status);
    if (payId !== undefined) settling.delete(payId);
    step.end(at);
    journey.step = undefined;
    journey.payId = undefined;
  };
  const onStep = (message: unknown): void => {
    const { step, payId } = message as { readonly step: string; readonly payId: string };
    settling.get(payId)?.addEvent(step);
  };
  subscribe(PAYMENT_CHANNEL, onStep);

  return {
    entered(res, layer) {
      const journey = journeyOf(res.req, res);
      const at = performance.now() + journey.epoch;
      leave(journey, res, at);
      if (!STEPS.has(layer)) return;
      const step = tracer.startSpan(
        layer,
        { startTime: at, kind: layer === 'forward' ? SpanKind.CLIENT : SpanKind.INTERNAL },
        journey.context,
      );
      journey.step = step;
      const call = currentCall(res);
      if (call?.stage === 'proven' && !settling.has(call.payment.payId)) {
        journey.payId = call.payment.payId;
        settling.set(journey.payId, step);
      }
      if (layer !== 'forward' || call?.stage !== 'funded') return;
      step.setAttribute('http.request.method', call.request.method);
      // What the merchant does for this call belongs below our question to him.
      advanceCall(res, { ...call, trace: { ...call.trace, traceparent: traceparentOf(step.spanContext()) } });
    },
    traceId: (req, res) =>
      PROBES.has(req.path) ? PASSED_ON.traceId(req, res) : journeyOf(req, res).span.spanContext().traceId,
    closed(req, res) {
      if (PROBES.has(req.path)) return;
      const journey = journeyOf(req, res);
      const at = performance.now() + journey.epoch;
      leave(journey, res, at);
      describe(journey.span, req, res);
      journey.span.end(at);
    },
    close: () => void unsubscribe(PAYMENT_CHANNEL, onStep),
  };
}

function begin(tracer: Tracer, req: Request, res: Response): Journey {
  const now = performance.now();
  const epoch = Date.now() - now;
  const startTime = (accessRecordOf(res)?.openedAt ?? now) + epoch;
  const { traceparent, tracestate } = traceOf(req, res);
  const parent = parentOf(traceparent, tracestate);
  const above = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
  const span = tracer.startSpan(req.method, { kind: SpanKind.SERVER, startTime }, above);
  // A list of vendors that no valid trace came with must not go on with ours.
  const call = parent === undefined ? currentCall(res) : undefined;
  if (call !== undefined) advanceCall(res, { ...call, trace: { traceparent: undefined, tracestate: undefined } });
  return { span, context: trace.setSpan(ROOT_CONTEXT, span), epoch, step: undefined, payId: undefined };
}

function parentOf(traceparent: string | undefined, tracestate: string | undefined): SpanContext | undefined {
  const traceId = traceparent === undefined ? undefined : traceIdOf(traceparent);
  if (traceparent === undefined || traceId === undefined) return undefined;
  const state =
    tracestate !== undefined && validTracestate(tracestate) ? { traceState: createTraceState(tracestate) } : {};
  return {
    traceId,
    spanId: traceparent.slice(36, 52),
    traceFlags: Number.parseInt(traceparent.slice(53, 55), 16) & 1,
    isRemote: true,
    ...state,
  };
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `${VERSION}-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/**
 * What can be said of a request without saying what is in it: nothing here but the request's id
 * comes from the caller.
 */
function describe(span: Span, req: Request, res: Response): void {
  const route = routeOf(req);
  const outcome = outcomeOf(res);
  if (route !== undefined) span.updateName(`${req.method} ${route}`);
  const said = {
    'http.request.method': req.method,
    'http.route': route,
    'http.response.status_code': res.statusCode,
    'acg.request_id': requestIdOf(res),
    'acg.channel': accessRecordOf(res)?.channel,
    'acg.resource': resourceIn(res),
    'acg.outcome': outcome,
    'error.type': isFailure(outcome) ? outcome : undefined,
  };
  for (const [name, value] of Object.entries(said)) if (value !== undefined) span.setAttribute(name, value);
  if (isFailure(outcome)) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The path as it is mounted, of what was asked; undefined where nothing is. */
function routeOf(req: Request): string | undefined {
  const path: unknown = (req as { readonly route?: { readonly path?: unknown } }).route?.path;
  const [first] = Array.isArray(path) ? path : [path];
  return typeof first === 'string' ? first : undefined;
}
