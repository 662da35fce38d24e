import { ProblemList } from '../../problems/problem.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where spans go, for traces alone before all signals (OTLP exporter specification). */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
/** They hold the credentials of the collector. */
const HEADERS = ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'OTEL_EXPORTER_OTLP_HEADERS'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/** What the standard variables say of the collector of traces. */
interface Collector {
  /** Must come out nowhere. */
  readonly secrets: readonly string[];
  /** One line for the log each. */
  readonly warnings: readonly string[];
}

/**
 * The collector of traces, or undefined: without an endpoint nothing is traced. The exporter reads
 * the same variables itself.
 * @throws ConfigError for an endpoint that is no URL of HTTP; it would send the spans somewhere
 * else
 */
export function collectorFrom(env: Environment): Collector | undefined {
  const endpoints = ENDPOINTS.filter((name) => said(env, name) !== undefined);
  const off = said(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || said(env, 'OTEL_TRACES_EXPORTER') === 'none';
  if (endpoints.length === 0 || off) return undefined;
  const problems = new ProblemList();
  for (const name of endpoints)
    if (!isHttpUrl(said(env, name) ?? '')) problems.add(name, 'must be an http:// or https:// URL');
  problems.throwIfAny();
  const protocol = PROTOCOLS.map((name) => said(env, name)).find((value) => value !== undefined);
  return {
    secrets: [
      ...HEADERS.flatMap((name) => headerValues(said(env, name) ?? '')),
      ...endpoints.flatMap((name) => passwordOf(said(env, name) ?? '')),
    ],
    warnings:
      protocol === 'grpc' ? ['traces are sent over HTTP: the endpoint must be the HTTP port of the collector'] : [],
  };
}

/** An empty variable is none (OpenTelemetry environment variable specification). */
function said(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === '' ? undefined : value;
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** As it is written in the URL, and decoded. */
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

/** Shorter than this a value is no secret worth its false alarms, characters. */
const SHORTEST_SECRET = 8;

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
