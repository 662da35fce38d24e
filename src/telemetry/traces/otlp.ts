/** Sends spans to an OpenTelemetry collector. */

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import release from '../../../package.json' with { type: 'json' };
import { recordSpans } from './spans.ts';
import type { Tracing } from './tracing.ts';

/** How long the last spans may take at the end of the process, milliseconds. */
const LAST_SPANS_MS = 2_000;
/** Spans that may wait for the collector, unless OTEL_BSP_MAX_QUEUE_SIZE is set. */
const DEFAULT_QUEUE = 2_048;

/**
 * The exporter, the batches, the sampler and the resource read the standard variables themselves.
 * Calls only put spans into a bounded queue: a collector that is slow, dead or hostile costs spans
 * and nothing else. `onTrouble`: called when it begins to fail, not for every attempt.
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
