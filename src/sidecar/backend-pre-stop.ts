/** The preStop hook that the backend's container had of its own, which the gateway runs for it. */

import { setTimeout as sleep } from 'node:timers/promises';
import { buildConnector, Client } from 'undici';

/** The hook that the pod had before the gateway's hook took its place. */
export type BackendPreStop =
  | { readonly kind: 'get'; readonly url: URL; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'sleep'; readonly seconds: number };

/** Addresses that are the pod's own: a hook may call nothing else. */
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?((?:\P{Cc}|\t)*)$/u;

/** A URL of the pod's loopback; undefined for every other text. */
export function readLoopbackUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  return url !== undefined && isHttp && LOOPBACK.has(url.hostname) ? url : undefined;
}

/** Fields of the connection or of a body; the kubelet's client does not send them either. */
export const NOT_REPEATED: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Reads header lines `Name: value`, joined with line feeds; undefined if a line is no header. */
export function readHeaderLines(text: string): Readonly<Record<string, string>> | undefined {
  const lines = text.split('\n').filter((line) => line !== '');
  const pairs = lines.map((line) => HEADER_LINE.exec(line));
  if (pairs.includes(null)) return undefined;
  // Node writes each character as one byte; the kubelet sends UTF-8.
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', Buffer.from(pair?.[2] ?? '').toString('latin1')]));
}

/**
 * Runs the hook as the kubelet would: any answer ends it, and it has no more time than the backend
 * has to end. Rejects when there is no answer.
 */
export async function runBackendPreStop(hook: BackendPreStop, atMostMs: number): Promise<void> {
  if (hook.kind === 'sleep') {
    await sleep(Math.min(hook.seconds * 1_000, atMostMs));
    return;
  }
  const { url } = hook;
  const headers = Object.fromEntries(
    Object.entries(hook.headers).filter(([name]) => !NOT_REPEATED.has(name.toLowerCase())),
  );
  const client = kubeletClient(url.origin);
  try {
    const signal = AbortSignal.timeout(atMostMs);
    const path = url.pathname + url.search;
    const { body } = await client.request({ method: 'GET', path, headers, reset: true, signal });
    body.on('error', () => undefined).resume();
    void client.close();
  } catch (error) {
    void client.destroy();
    throw error;
  }
}

/**
 * A client that asks as the kubelet does: certificates are not checked, and a server is named by
 * the address that is dialled, whatever Host says. The signal of a request is its only time limit:
 * a preStop may take longer than the library waits by itself.
 */
export function kubeletClient(origin: string): Client {
  const connect = buildConnector({ rejectUnauthorized: false, allowH2: false, timeout: 0 });
  return new Client(origin, {
    connect: (options, callback) => connect({ ...options, servername: '' }, callback),
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
