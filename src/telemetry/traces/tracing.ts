/** The port of tracing, and its form without a collector. */

import type { Request, Response } from 'express';
import { traceIdOf } from '../../backend/trace-context.ts';
import { currentCall } from '../../pipeline/call.ts';
import type { StepName } from '../../pipeline/middleware/timed.ts';
import { ProblemList } from '../../problems/problem.ts';
import { singleHeader } from '../../server/http/request.ts';

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

/** The caller's trace: of the message after it is read, of the request's head before. */
export function traceOf(
  req: Request,
  res: Response,
): { readonly traceparent: string | undefined; readonly tracestate: string | undefined } {
  const call = currentCall(res);
  if (call !== undefined) return call.trace;
  return { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The variable for traces goes before the one for all signals (OTLP exporter specification). */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
/** Variables with the credentials of the collector. */
const HEADERS = ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'OTEL_EXPORTER_OTLP_HEADERS'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/** Shorter values are not masked in the log: they would occur by chance. */
const SHORTEST_SECRET = 8;

interface Collector {
  /** Credentials of the collector, which the log masks. */
  readonly secrets: readonly string[];
  /** One line for the log each. */
  readonly warnings: readonly string[];
}

/**
 * The collector of traces, or undefined: without an endpoint nothing is traced. The exporter reads
 * the same variables itself.
 * @throws ConfigError for an endpoint that is no HTTP URL: the exporter would use a default one
 */
export function collectorFrom(env: Environment): Collector | undefined {
  const endpoints = ENDPOINTS.filter((name) => variable(env, name) !== undefined);
  const off =
    variable(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || variable(env, 'OTEL_TRACES_EXPORTER') === 'none';
  if (endpoints.length === 0 || off) return undefined;
  const problems = new ProblemList();
  for (const name of endpoints)
    if (!isHttpUrl(variable(env, name) ?? '')) problems.add(name, 'must be an http:// or https:// URL');
  problems.throwIfAny();
  const protocol = PROTOCOLS.map((name) => variable(env, name)).find((value) => value !== undefined);
  return {
    secrets: [
      ...HEADERS.flatMap((name) => headerValues(variable(env, name) ?? '')),
      ...endpoints.flatMap((name) => passwordOf(variable(env, name) ?? '')),
    ],
    warnings:
      protocol === 'grpc' ? ['traces are sent over HTTP: the endpoint must be the HTTP port of the collector'] : [],
  };
}

/** An empty variable is none (OpenTelemetry environment variable specification). */
function variable(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === '' ? undefined : value;
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** The password as the URL spells it, and decoded. */
function passwordOf(url: string): readonly string[] {
  const { password } = new URL(url);
  return password === '' ? [] : [password, decoded(password)];
}

/** `name=value,name=value`, the values percent-encoded or not; both spellings are secret. */
function headerValues(list: string): readonly string[] {
  return list
    .split(',')
    .map((pair) => pair.slice(pair.indexOf('=') + 1).trim())
    .flatMap((value) => [value, decoded(value)])
    .filter((value) => value.length >= SHORTEST_SECRET);
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
