/**
 * What the merchant's container asks of the kubelet for itself: read from the pod or, after an
 * earlier injection, from the gateway's environment.
 */

import { variableText } from './gateway-container.ts';
import { namedPort } from './merchant.ts';
import { ENV_HEADERS, ENV_PRESTOP, ENV_PRESTOP_SECONDS, PROBES, RELEASE_PATH } from './names.ts';
import type { Container, EnvVar, Hook, HttpGet } from './pod.ts';
import { quoted, Refusal } from './refusal.ts';

/** Addresses that mean the merchant; the kubelet would take them for the node's own. */
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['', 'localhost', '127.0.0.1']);
const WRITTEN_URL = /^(https?):\/\/127\.0\.0\.1:([1-9]\d{0,4})(\/.*)$/s;

/** A request that the gateway makes to the merchant in the kubelet's place. */
interface LoopbackRequest {
  readonly url: string;
  /** Lines `Name: value`; undefined when there are none. */
  readonly headers: string | undefined;
}

type ProbeMember = (typeof PROBES)[number]['member'];

/** The merchant's own preStop, in as far as the gateway can run it in the merchant's place. */
type OwnPreStop =
  | { readonly kind: 'none' }
  | { readonly kind: 'request'; readonly request: LoopbackRequest }
  | { readonly kind: 'sleep'; readonly seconds: number }
  /** Stays as it is: an `exec`, or a request to somewhere else. */
  | { readonly kind: 'kept'; readonly hook: Hook };

export interface Originals {
  readonly probes: ReadonlyMap<ProbeMember, LoopbackRequest>;
  readonly preStop: OwnPreStop;
}

/** @throws Refusal */
export function readOriginals(container: Container, earlier: readonly EnvVar[], management: number): Originals {
  const probes = new Map<ProbeMember, LoopbackRequest>();
  for (const { member, path, env } of PROBES) {
    const httpGet = container[member]?.httpGet;
    if (httpGet === undefined) continue;
    const asked = `the ${member} of container ${container.name}`;
    if (isOwn(httpGet, path, management)) probes.set(member, remembered(earlier, env, asked));
    else if (isLoopback(httpGet)) probes.set(member, loopbackRequest(httpGet, container, asked));
  }
  return { probes, preStop: readPreStop(container, earlier, management) };
}

function readPreStop(container: Container, earlier: readonly EnvVar[], management: number): OwnPreStop {
  const hook = container.lifecycle?.preStop;
  if (hook?.exec !== undefined) return { kind: 'kept', hook };
  if (hook?.sleep !== undefined) return { kind: 'sleep', seconds: hook.sleep.seconds ?? 0 };
  const asked = `the preStop of container ${container.name}`;
  if (hook?.httpGet === undefined) return { kind: 'none' };
  if (isOwn(hook.httpGet, RELEASE_PATH, management)) return rememberedPreStop(earlier, asked);
  if (!isLoopback(hook.httpGet)) return { kind: 'kept', hook };
  return { kind: 'request', request: loopbackRequest(hook.httpGet, container, asked) };
}

function rememberedPreStop(earlier: readonly EnvVar[], asked: string): OwnPreStop {
  const seconds = variableText(earlier, ENV_PRESTOP_SECONDS);
  if (seconds !== undefined && /^\d{1,9}$/.test(seconds)) return { kind: 'sleep', seconds: Number(seconds) };
  if (variableText(earlier, ENV_PRESTOP) === undefined) return { kind: 'none' };
  return { kind: 'request', request: remembered(earlier, ENV_PRESTOP, asked) };
}

/** Whether the handler already asks the gateway. */
function isOwn({ port, path }: HttpGet, ownPath: string, management: number): boolean {
  return port === management && path === ownPath;
}

function isLoopback({ host = '' }: HttpGet): boolean {
  return LOOPBACK_HOSTS.has(host);
}

function remembered(earlier: readonly EnvVar[], name: string, asked: string): LoopbackRequest {
  const url = variableText(earlier, name);
  if (url === undefined || !WRITTEN_URL.test(url))
    throw new Refusal(`${asked} already asks the gateway, and what it asked before is lost; write the merchant's own`);
  return { url, headers: variableText(earlier, `${name}${ENV_HEADERS}`) };
}

/** As the kubelet would send it, to the merchant's loopback address. */
function loopbackRequest(httpGet: HttpGet, container: Container, asked: string): LoopbackRequest {
  const { port, path = '', scheme = 'HTTP', httpHeaders = [] } = httpGet;
  const number = typeof port === 'number' ? port : namedPort(container, port, asked);
  const broken = httpHeaders.find(({ name, value = '' }) => /[\r\n]/.test(name + value));
  if (broken !== undefined)
    throw new Refusal(`${asked} sends header ${quoted(broken.name)} with a line break; a header is one line`);
  return {
    // The slash keeps a path such as `@elsewhere` from becoming part of the address.
    url: `${scheme.toLowerCase()}://127.0.0.1:${number}${path.startsWith('/') ? '' : '/'}${path}`,
    headers:
      httpHeaders.length === 0 ? undefined : httpHeaders.map(({ name, value = '' }) => `${name}: ${value}`).join('\n'),
  };
}

/** The handler that a request of an earlier injection stands for. */
export function handlerOf({ url, headers }: LoopbackRequest): HttpGet {
  const [, scheme = 'http', port, path = '/'] = WRITTEN_URL.exec(url) ?? [];
  return {
    path,
    port: Number(port),
    scheme: scheme.toUpperCase(),
    ...(headers === undefined ? {} : { httpHeaders: headers.split('\n').map(headerOf) }),
  };
}

function headerOf(line: string): { readonly name: string; readonly value: string } {
  const at = line.indexOf(': ');
  return { name: line.slice(0, at), value: line.slice(at + 2) };
}
