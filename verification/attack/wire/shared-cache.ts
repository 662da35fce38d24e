import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A shared cache in front of a gateway, which keeps whatever RFC 9111 does not forbid it to keep.
 */
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
 * Starts one. It is as greedy as a shared cache may be: it keeps answers to POST too, by target and
 * body, looks at no `Vary`, takes any status, and where no lifetime is said it takes one for
 * granted (RFC 9111, sections 3 and 4.2.2).
 */
export async function startSharedCache(origin: string): Promise<SharedCache> {
  const kept = new Map<string, Kept>();
  let hits = 0;
  const serve = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const body = await bytesOf(request);
    const key = createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest('hex');
    const known = kept.get(key);
    if (known !== undefined) hits += 1;
    const answer = known ?? (await forwarded(origin, request, body));
    if (known === undefined && mayKeep(answer.headers)) kept.set(key, answer);
    response.writeHead(answer.status, answer.headers).end(answer.body);
  };
  const server = http.createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits: () => hits,
    keeps: (text) =>
      [...kept.values()].some(({ headers, body }) => body.includes(text) || JSON.stringify(headers).includes(text)),
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
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

async function bytesOf(message: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
