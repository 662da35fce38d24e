/**
 * Reads the merchant's own probes from the environment, where the injection wrote them. The values
 * come from the authors of pods, so a value that is not exactly right is refused, never guessed.
 */

import type { ProblemList } from '../problems/problem.ts';

/** The probes of a container, as Kubernetes names them. */
export const APP_PROBES = ['liveness', 'readiness', 'startup'] as const;
type AppProbeKind = (typeof APP_PROBES)[number];

/** One `httpGet` of the merchant's container, as the kubelet had to ask it. */
export interface AppProbe {
  readonly scheme: 'http' | 'https';
  /** On 127.0.0.1. */
  readonly port: number;
  /** Path and query. */
  readonly target: string;
  /** In their order; a name may come more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** The probes that the merchant's container has. */
export type AppProbeSettings = Readonly<Partial<Record<AppProbeKind, AppProbe>>>;

const URL_FORM = /^(https?):\/\/([^/?#]*)(\/.*)$/s;
const LOOPBACK = /^127\.0\.0\.1:([1-9]\d{0,4})$/;
const MAX_PORT = 65_535;
/** Longest request target, characters. */
const MAX_TARGET = 2_048;
/** RFC 9110, 5.1 and 5.5; a value may be empty, and hold any text without control characters. */
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}): ?((?:\P{Cc}|\t){0,8192})$/u;

/** The variable of a probe; its headers have the same name with `_HEADERS` behind it. */
export function appProbeVariable(kind: AppProbeKind): string {
  return `GATEWAY_APP_PROBE_${kind.toUpperCase()}`;
}

/** Problems carry the name of the variable, never its value. */
export function readAppProbes(
  env: Readonly<Record<string, string | undefined>>,
  problems: ProblemList,
): AppProbeSettings {
  const probes: Partial<Record<AppProbeKind, AppProbe>> = {};
  for (const kind of APP_PROBES) {
    const probe = readProbe(appProbeVariable(kind), env, problems);
    if (probe !== undefined) probes[kind] = probe;
  }
  return probes;
}

function readProbe(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
  problems: ProblemList,
): AppProbe | undefined {
  const text = env[name];
  const headersName = `${name}_HEADERS`;
  if (text === undefined) {
    if (env[headersName] !== undefined) problems.add(headersName, `has no probe: ${name} is not set`);
    return undefined;
  }
  const [, scheme, authority = '', path = ''] = URL_FORM.exec(text) ?? [];
  if (scheme !== 'http' && scheme !== 'https') {
    problems.add(name, 'must be a URL such as http://127.0.0.1:8080/healthz');
    return undefined;
  }
  const port = Number(LOOPBACK.exec(authority)?.[1] ?? Number.NaN);
  if (!(port <= MAX_PORT)) {
    problems.add(name, `must name 127.0.0.1 and a port from 1 to ${MAX_PORT}, because only the pod itself is asked`);
    return undefined;
  }
  const target = requestTarget(path);
  if (target.length > MAX_TARGET) {
    problems.add(name, 'must have a path of at most 2,048 characters, percent-encoded');
    return undefined;
  }
  const headers = readHeaders(env[headersName]);
  if (headers === undefined) {
    problems.add(headersName, 'must have one header a line, as Name: value');
    return undefined;
  }
  return { scheme, port, target, headers };
}

/** The target as the kubelet sends it: no fragment, all but visible ASCII percent-encoded. */
function requestTarget(path: string): string {
  const [sent = ''] = path.split('#');
  const encoded = (text: string): string => Buffer.from(text).toString('hex').replace(/../g, '%$&').toUpperCase();
  return sent.replace(/[^\x21-\x7e]+/gu, encoded);
}

/** Undefined: some line is no header. */
function readHeaders(text: string | undefined): AppProbe['headers'] | undefined {
  if (text === undefined) return [];
  const headers: (readonly [string, string])[] = [];
  for (const line of text.split('\n')) {
    const [, name, value = ''] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined) return undefined;
    // Node writes each character as one byte; the kubelet sends UTF-8.
    headers.push([name, Buffer.from(value).toString('latin1')]);
  }
  return headers;
}
