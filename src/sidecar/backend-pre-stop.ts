/** The preStop hook that the backend's container had of its own, which the gateway runs for it. */

import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';

/** What the pod said before the gateway's hook took its place. */
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

/** Header lines `Name: value`, joined with line feeds; undefined where one is none. */
export function readHeaderLines(text: string): Readonly<Record<string, string>> | undefined {
  const lines = text.split('\n').filter((line) => line !== '');
  const pairs = lines.map((line) => HEADER_LINE.exec(line));
  if (pairs.includes(null)) return undefined;
  // Node writes each character as one byte; the kubelet sends UTF-8.
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', Buffer.from(pair?.[2] ?? '').toString('latin1')]));
}

/**
 * Runs the hook as the kubelet would: any answer ends it, certificates are not checked, and it has
 * no more time than the backend has to end. Rejects when there is no answer.
 */
export async function runBackendPreStop(hook: BackendPreStop, atMostMs: number): Promise<void> {
  if (hook.kind === 'sleep') {
    await sleep(Math.min(hook.seconds * 1_000, atMostMs));
    return;
  }
  const { url, headers } = hook;
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  await new Promise<void>((resolve, reject) => {
    const signal = AbortSignal.timeout(atMostMs);
    const asked = send(url, { headers, agent: false, rejectUnauthorized: false, signal }, (answer) => {
      answer.on('error', () => undefined).resume();
      resolve();
    });
    asked.once('error', reject).end();
  });
}
