/** A shared cache before a gateway that keeps as much as RFC 9111 allows. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { bytesOf, serveHttp } from '../../../spec/support/http-server.ts';

/** A shared cache before a gateway that keeps everything that RFC 9111 does not forbid. */
export interface SharedCache {
  readonly url: string;
  /** Answers that were given without asking the gateway. */
  hits(): number;
  /** Whether any answer that it keeps has this text in its body or its head. */
  keeps(text: string): boolean;
  stop(): Promise<void>;
}

interface Kept {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Starts one. It keeps all that a shared cache may keep: answers to POST too, by target and body,
 * without `Vary`, of any status, and with a default lifetime where none is given (RFC 9111,
 * sections 3 and 4.2.2).
 */
export async function startSharedCache(origin: string): Promise<SharedCache> {
  const kept = new Map<string, Kept>();
  let hits = 0;
  const server = await serveHttp(async ({ request, response, body }) => {
    const key = createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest('hex');
    const known = kept.get(key);
    if (known !== undefined) hits += 1;
    const answer = known ?? (await forwarded(origin, request, body));
    if (known === undefined && mayKeep(answer.headers)) kept.set(key, answer);
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
  return {
    ...server,
    hits: () => hits,
    keeps: (text) =>
      [...kept.values()].some(({ headers, body }) => body.includes(text) || JSON.stringify(headers).includes(text)),
  };
}

/** RFC 9111, 3: no `no-store`, and no `private`, because this cache is shared. */
function mayKeep(headers: http.IncomingHttpHeaders): boolean {
  return !/(?:^|,)\s*(?:no-store|private|no-cache)\s*(?:$|,)/i.test(headers['cache-control'] ?? '');
}

async function forwarded(origin: string, { method, url, headers }: http.IncomingMessage, body: Buffer): Promise<Kept> {
  const request = http.request(`${origin}${url}`, { method, headers });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const { 'transfer-encoding': _, connection: __, 'keep-alive': ___, ...relayed } = response.headers;
  const bytes = await bytesOf(response);
  return {
    status: response.statusCode ?? 0,
    headers: { ...relayed, 'content-length': String(bytes.length) },
    body: bytes,
  };
}
