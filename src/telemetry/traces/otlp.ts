/** Makes the spans of a request, and sends them to an OpenTelemetry collector. */

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
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import type { Request, Response } from 'express';
import release from '../../../package.json' with { type: 'json' };
import { traceIdOf, validTracestate } from '../../backend/trace-context.ts';
import { PAYMENT_CHANNEL } from '../../payments/settlement/attempt.ts';
import { advanceCall, currentCall, isFailure, outcomeOf, resourceIn } from '../../pipeline/call.ts';
import type { StepName } from '../../pipeline/middleware/timed.ts';
import { accessRecordOf, requestIdOf } from '../../server/http/access-record.ts';
import { PASSED_ON, type Tracing, traceOf } from './tracing.ts';

/** How long the last spans may take at the end of the process, milliseconds. */
const LAST_SPANS_MS = 2_000;
/** Spans that may wait for the collector, unless OTEL_BSP_MAX_QUEUE_SIZE is set. */
const DEFAULT_QUEUE = 2_048;

/**
 * The exporter, the batches, the sampler and the resource read the standard variables themselves.
 * Calls only put spans into a bounded queue: a collector that is slow, dead or hostile costs spans
 * and nothing else. `onTrouble`: called when exports begin to fail, not for every attempt.
 */
export function openOtlp(
  env: Readonly<Record<string, string | undefined>>,
  onTrouble: (cause: unknown) => void,
): Tracing {
  const queue = boundedQueue(Number(env['OTEL_BSP_MAX_QUEUE_SIZE'] ?? DEFAULT_QUEUE) || DEFAULT_QUEUE, onTrouble);
  const own = { 'service.name': 'agent-commerce-gateway', 'service.version': release.version };
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(own))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [queue.processor],
  });
  const spans = recordSpans(provider.getTracer('agent-commerce-gateway', release.version));
  return {
    ...spans,
    lost: () => queue.lost,
    async close() {
      spans.close();
      const sent = provider.shutdown().then(
        () => true,
        () => true,
      );
      return Promise.race([sent, afterwards(LAST_SPANS_MS)]);
    },
  };
}

/** A queue that counts the spans it loses, which the batches between it and the exporter do not. */
function boundedQueue(maxQueueSize: number, onTrouble: (cause: unknown) => void) {
  const lost = { queue_full: 0, not_taken: 0 };
  let waiting = 0;
  let failing = false;
  const exporter = new OTLPTraceExporter();
  const counted: SpanExporter = {
    export(spans, done) {
      exporter.export(spans, (result) => {
        waiting -= spans.length;
        const failed = result.code !== 0;
        if (failed) lost.not_taken += spans.length;
        if (failed && !failing) onTrouble(result.error);
        failing = failed;
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor(counted, { maxQueueSize });
  const processor: SpanProcessor = {
    onStart: (span, context) => batches.onStart(span, context),
    onEnd(span) {
      if (waiting >= maxQueueSize) {
        lost.queue_full += 1;
        return;
      }
      if ((span.spanContext().traceFlags & 1) === 1) waiting += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  };
  return { processor, lost };
}

function afterwards(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), ms).unref());
}

/** Middleware that wait for another service or the reader; the others take microseconds. */
const STEPS: ReadonlySet<StepName> = new Set(['verify', 'settle', 'forward', 'conclude']);
/** Requested every few seconds by the orchestrator: not traced. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready']);
/** The version of `traceparent` (W3C Trace Context, section 3.2). */
const VERSION = '00';

/** The spans of one request. */
interface RequestSpans {
  readonly span: Span;
  readonly context: Context;
  /** The offset from the monotonic clock to milliseconds since the epoch. */
  readonly epoch: number;
  step: Span | undefined;
  payId: string | undefined;
}

/** The part of tracing that makes spans; `openOtlp` exports them. */
function recordSpans(tracer: Tracer): Pick<Tracing, 'entered' | 'traceId' | 'closed'> & { close(): void } {
  const requests = new WeakMap<Response, RequestSpans>();
  /** The spans of running settlements by payId, for the steps that the settlement publishes. */
  const settling = new Map<string, Span>();

  const spansOf = (req: Request, res: Response): RequestSpans => {
    const known = requests.get(res);
    if (known !== undefined) return known;
    const begun = begin(tracer, req, res);
    requests.set(res, begun);
    return begun;
  };
  const leave = (spans: RequestSpans, res: Response, at: number): void => {
    const { step, payId } = spans;
    if (step === undefined) return;
    const call = currentCall(res);
    if (call?.stage === 'answered') step.setAttribute('http.response.status_code', call.answer.status);
    if (payId !== undefined) settling.delete(payId);
    step.end(at);
    spans.step = undefined;
    spans.payId = undefined;
  };
  const onStep = (message: unknown): void => {
    const { step, payId } = message as { readonly step: string; readonly payId: string };
    settling.get(payId)?.addEvent(step);
  };
  subscribe(PAYMENT_CHANNEL, onStep);

  return {
    entered(res, name) {
      const spans = spansOf(res.req, res);
      const at = performance.now() + spans.epoch;
      leave(spans, res, at);
      if (!STEPS.has(name)) return;
      const step = tracer.startSpan(
        name,
        { startTime: at, kind: name === 'forward' ? SpanKind.CLIENT : SpanKind.INTERNAL },
        spans.context,
      );
      spans.step = step;
      const call = currentCall(res);
      if (call?.stage === 'proven' && !settling.has(call.payment.payId)) {
        spans.payId = call.payment.payId;
        settling.set(spans.payId, step);
      }
      if (name !== 'forward' || call?.stage !== 'funded') return;
      step.setAttribute('http.request.method', call.request.method);
      // The spans of the backend for this call belong below the span of the request to it.
      advanceCall(res, { ...call, trace: { ...call.trace, traceparent: traceparentOf(step.spanContext()) } });
    },
    traceId: (req, res) =>
      PROBES.has(req.path) ? PASSED_ON.traceId(req, res) : spansOf(req, res).span.spanContext().traceId,
    closed(req, res) {
      if (PROBES.has(req.path)) return;
      const spans = spansOf(req, res);
      const at = performance.now() + spans.epoch;
      leave(spans, res, at);
      describe(spans.span, req, res);
      spans.span.end(at);
    },
    close: () => void unsubscribe(PAYMENT_CHANNEL, onStep),
  };
}

function begin(tracer: Tracer, req: Request, res: Response): RequestSpans {
  const now = performance.now();
  const epoch = Date.now() - now;
  const startTime = (accessRecordOf(res)?.openedAt ?? now) + epoch;
  const { traceparent, tracestate } = traceOf(req, res);
  const parent = parentOf(traceparent, tracestate);
  const above = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
  const span = tracer.startSpan(req.method, { kind: SpanKind.SERVER, startTime }, above);
  // A tracestate without a valid traceparent must not be sent on with the new trace.
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

/** Attributes without any content of the request: only the request id comes from the caller. */
function describe(span: Span, req: Request, res: Response): void {
  const route = routeOf(req);
  const outcome = outcomeOf(res);
  // A checkout has the outcomes of ACP.
  const failed = isFailure(outcome) || res.statusCode >= 500;
  if (route !== undefined) span.updateName(`${req.method} ${route}`);
  const attributes = {
    'http.request.method': req.method,
    'http.route': route,
    'http.response.status_code': res.statusCode,
    'acg.request_id': requestIdOf(res),
    'acg.channel': accessRecordOf(res)?.channel,
    'acg.resource': resourceIn(res),
    'acg.outcome': outcome,
    'error.type': failed ? (outcome ?? String(res.statusCode)) : undefined,
  };
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.setAttribute(name, value);
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The path that the route was mounted at, `:name` for a group; undefined without a route. */
function routeOf(req: Request): string | undefined {
  const path: unknown = (req as { readonly route?: { readonly path?: unknown } }).route?.path;
  const [first] = Array.isArray(path) ? path : [path];
  if (first instanceof RegExp) return first.source.slice(1, -1).replaceAll('\\/', '/').replace(GROUP, ':$<name>');
  return typeof first === 'string' ? first : undefined;
}

const GROUP = /\(\?<(?<name>\w+)>[^)]*\)/g;
