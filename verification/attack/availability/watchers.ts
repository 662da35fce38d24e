/** Requests probes, operator routes and event stream while a flood runs. */

import { percentile } from '../../bench/numbers.ts';
import { WireClient } from './wire-client.ts';

/** How often each route is requested, milliseconds. */
const EVERY_MS = 100;

/** The answers of one watched route. */
export interface Watched {
  readonly what: string;
  readonly asked: number;
  /** Answers other than 200, and requests without an answer. */
  readonly failed: number;
  readonly worstMs: number;
  readonly p50Ms: number;
}

/**
 * Sends GET to each URL repeatedly, each on a connection of its own, until the result is
 * called.
 */
export function watch(routes: Readonly<Record<string, string>>): () => Promise<readonly Watched[]> {
  const stops = Object.entries(routes).map(([what, url]) => watchOne(what, new URL(url)));
  return () => Promise.all(stops.map((stop) => stop()));
}

function watchOne(what: string, { hostname, port, pathname }: URL): () => Promise<Watched> {
  const client = new WireClient(hostname, Number(port));
  const request = Buffer.from(`GET ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`);
  const times: number[] = [];
  let failed = 0;
  let stopped = false;
  const done = (async () => {
    while (!stopped) {
      const askedAt = performance.now();
      const status = await new Promise<number>((resolve) => {
        client.ask(request, (answer) => resolve(answer instanceof Error ? 0 : answer.status));
      });
      times.push(performance.now() - askedAt);
      if (status !== 200) failed += 1;
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  })();
  return async () => {
    stopped = true;
    await done;
    client.close();
    const sorted = times.toSorted((a, b) => a - b);
    return { what, asked: times.length, failed, worstMs: sorted.at(-1) ?? 0, p50Ms: percentile(sorted, 0.5) };
  };
}
