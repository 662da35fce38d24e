/** The sample backend of the local world: good answers, bad ones, and a record of requests. */

import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { answerBytes, answerJson, type HttpExchange, resetConnection, serveHttp } from './http-server.ts';
import { echoWebSocket } from './websocket-echo.ts';

/** One request as the backend received it. */
export interface SampleRequest {
  readonly method: string;
  /** Request target: path and query as sent. */
  readonly url: string;
  /** Name, value, name, value, with the sender's spelling and order. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly idempotencyKey: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What the answers of one backend share. */
export interface BackendState {
  /** Failures still to come, by path and idempotency key. */
  readonly failuresLeft: Map<string, number>;
  /** Resolves when `/held` may answer. */
  released(): Promise<void>;
}

/** How requests of these methods and paths are answered. */
export interface Route {
  readonly methods: readonly string[];
  readonly pattern: RegExp;
  answer(request: SampleRequest, response: ServerResponse, state: BackendState): void | Promise<void>;
}

/** A backend that records every request, for assertions. */
export interface SampleBackend {
  readonly url: string;
  /** In order of arrival, complete with their bodies; the newest 10,000. */
  readonly requests: readonly SampleRequest[];
  /** How often requests with this key arrived, whatever was answered. */
  executions(idempotencyKey: string): number;
  /** Resolves with the next request whose path begins so, as soon as its body has arrived. */
  nextRequest(pathPrefix: string): Promise<SampleRequest>;
  /** Lets every request that waits on `/held` go on, and those to come until the next `hold()`. */
  release(): void;
  hold(): void;
  /** Forgets the requests, not what is held. */
  forget(): void;
  /** Ends also the connections whose answers are still running. */
  stop(): Promise<void>;
}

/** Requests kept in memory; older ones are dropped so that a long run cannot fill it. */
const MAX_RECORDED = 10_000;
const ARCHIVE_BYTES = 5 * 1024 * 1024;
const archive = deterministicBytes(ARCHIVE_BYTES);

/** The binary that `/archive.bin` serves: every byte value occurs, the same bytes in every run. */
export const ARCHIVE = { bytes: archive, sha256: createHash('sha256').update(archive).digest('hex') } as const;

/**
 * Names that a gateway must keep from the agent, beside the ones it relays (contract 3, headers
 * relayed to the agent).
 */
const NOISY_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  'content-language': 'en',
  'content-disposition': 'inline; filename="noisy.json"',
  etag: '"noisy-1"',
  'last-modified': 'Tue, 01 Sep 2026 00:00:00 GMT',
  link: '</next>; rel="next"',
  'cache-control': 'max-age=60',
  'set-cookie': 'session=merchant',
  server: 'merchant/1',
  'x-powered-by': 'merchant',
  'x-internal': 'merchant',
  'access-control-allow-origin': '*',
  'payment-response': 'forged',
  'payment-required': 'forged',
  'x-request-id': 'merchant-request',
};

/** What `/document` holds. */
const DOCUMENT = Buffer.from('0123456789');
/** What every answer of `/document` says of it. */
export const DOCUMENT_HEADERS = {
  etag: `"${createHash('sha1').update(DOCUMENT).digest('base64url')}"`,
  'last-modified': 'Tue, 01 Sep 2026 00:00:00 GMT',
  'cache-control': 'public, max-age=60',
  'accept-ranges': 'bytes',
} as const;

/** The page of the sample merchant for people. */
const HOME_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Market shop</title>
<h1>Market shop</h1>
<p>Today's <a href="/weather/Berlin">weather in Berlin</a> is free. A <a href="/reports/Berlin">market report</a> has a price.</p>
</html>
`;
/** Where the sample backend takes WebSockets: it sends every message back. */
const ECHO_PATH = '/chat';

/** What the sample backend serves. Bodies are JSON unless the path says otherwise. */
const SAMPLE_ROUTES: readonly Route[] = [
  route('GET', '/', (_, response) => answerBytes(response, 200, 'text/html; charset=utf-8', Buffer.from(HOME_PAGE))),
  route('GET', '/weather/[^/]+', ({ url }, response) => {
    answerJson(response, 200, { city: decodeURIComponent(url.split('?')[0]?.split('/')[2] ?? ''), sky: 'clear' });
  }),
  route('GET', '/reports/[^/]+', ({ url }, response) => {
    const city = decodeURIComponent(url.split('?')[0]?.split('/')[2] ?? '');
    answerJson(response, 200, { city, currency: 'EUR', price: '12.50', volume: 340 });
  }),
  route('GET', '/cities', (_, response) => answerJson(response, 200, { cities: ['Berlin', 'Lisboa', 'São Paulo'] })),
  route('GET', '/prices\\.csv', (_, response) => {
    const table = Buffer.from('city,price\r\nBerlin,12.50\r\nSão Paulo,9.90\r\n');
    answerBytes(response, 200, 'text/csv; charset=utf-8', table);
  }),
  route('GET', '/archive\\.bin', (_, response) => answerBytes(response, 200, 'application/octet-stream', archive)),
  route('GET', '/greeting', (_, response) => {
    response.setHeader('content-language', 'de');
    answerBytes(response, 200, 'text/plain; charset=utf-8', Buffer.from('Grüß Gott\n'));
  }),
  route('GET', '/noisy', (_, response) => {
    response.writeHead(200, NOISY_HEADERS).end('{"noisy":true}');
  }),
  /** Answers preconditions, and ranges such as `bytes=2-4`. */
  route('GET', '/document', document),
  route('GET', '/nothing', (_, response) => {
    response.writeHead(204).end();
  }),
  /** `chunks` pieces of ten bytes, `everyMs` apart, without a content length. */
  route('GET', '/slow', async ({ url }, response) => {
    const { searchParams } = new URL(url, 'http://backend');
    const chunks = Number(searchParams.get('chunks') ?? 5);
    const everyMs = Number(searchParams.get('everyMs') ?? 20);
    response.writeHead(200, { 'content-type': 'text/plain' });
    for (let sent = 0; sent < chunks && !response.destroyed; sent += 1) {
      response.write(`${String(sent).padStart(9, '0')}\n`);
      await delay(everyMs);
    }
    response.end();
  }),
  /** `size` deterministic bytes; `undeclared=true` sends them without a content length. */
  route('GET', '/bytes', ({ url }, response) => {
    const { searchParams } = new URL(url, 'http://backend');
    const bytes = deterministicBytes(Math.min(Number(searchParams.get('size') ?? 0), 64 * 1024 * 1024));
    if (searchParams.get('undeclared') !== 'true') return answerBytes(response, 200, 'application/octet-stream', bytes);
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    response.write(bytes);
    response.end();
  }),
  route('POST', '/echo', ({ headers, body }, response) => {
    answerBytes(response, 200, headers['content-type'] ?? 'application/octet-stream', body);
  }),
  route('GET|POST', '/echo/headers', ({ rawHeaders }, response) => answerJson(response, 200, { rawHeaders })),
  route('GET|POST', '/fail/\\d{3}', fail),
  /** Fails so many times for one idempotency key, then answers. */
  route('GET|POST', '/flaky/\\d+', flaky),
  route('GET', '/redirect', (_, response) => {
    response.writeHead(302, { location: '/reports/Berlin' }).end();
  }),
  /** Breaks the connection before the head. */
  route('GET|POST', '/reset', (_, response) => resetConnection(response)),
  /** Declares 1,000 bytes, sends 10 and breaks off. */
  route('GET', '/broken', (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '1000' });
    response.write('0123456789', () => response.socket?.destroy());
  }),
  route('GET', '/silent', () => undefined),
  route('GET|POST', '/held', held),
];

/** Starts a backend on 127.0.0.1. Default: a free port, and the routes of the sample. */
export async function startSampleBackend(
  options: { readonly port?: number; readonly routes?: readonly Route[] } = {},
): Promise<SampleBackend> {
  const { port = 0, routes = SAMPLE_ROUTES } = options;
  const requests: SampleRequest[] = [];
  const executions = new Map<string, number>();
  const arrivals = new EventEmitter().setMaxListeners(0);
  const gate = createGate();
  const state: BackendState = { failuresLeft: new Map(), released: gate.released };
  const server = await serveHttp(
    async (exchange) => {
      const request = recordOf(exchange);
      requests.push(request);
      if (requests.length > MAX_RECORDED) requests.shift();
      const key = request.idempotencyKey;
      if (key !== undefined) executions.set(key, (executions.get(key) ?? 0) + 1);
      arrivals.emit('request', request);
      const { pathname } = new URL(request.url, 'http://backend');
      const found = routes.find(({ methods, pattern }) => methods.includes(request.method) && pattern.test(pathname));
      if (found === undefined) answerJson(exchange.response, 404, { error: 'no such path' });
      else await found.answer(request, exchange.response, state);
    },
    port,
    (request, socket, head) => {
      if (request.url === ECHO_PATH) echoWebSocket(request, socket, head);
      else socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    },
  );

  return {
    url: server.url,
    requests,
    executions: (key) => executions.get(key) ?? 0,
    nextRequest: (pathPrefix) =>
      new Promise((resolve) => {
        const look = (request: SampleRequest) => {
          if (!request.url.startsWith(pathPrefix)) return;
          arrivals.off('request', look);
          resolve(request);
        };
        arrivals.on('request', look);
      }),
    release: gate.open,
    hold: gate.close,
    forget: () => {
      requests.length = 0;
      executions.clear();
    },
    stop: async () => {
      gate.open();
      await server.stop();
    },
  };
}

function recordOf({ request, body }: HttpExchange): SampleRequest {
  const { method = '', url = '', rawHeaders, headers } = request;
  const key = headers['idempotency-key'];
  const idempotencyKey = typeof key === 'string' ? key : undefined;
  return { method, url, rawHeaders, headers, body, idempotencyKey, at: Date.now() };
}

interface Gate {
  released(): Promise<void>;
  open(): void;
  close(): void;
}

/** Closed at first. */
function createGate(): Gate {
  let opened = Promise.withResolvers<void>();
  let isOpen = false;
  return {
    released: () => opened.promise,
    open: () => {
      isOpen = true;
      opened.resolve();
    },
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      opened = Promise.withResolvers<void>();
    },
  };
}

/** A route: methods such as `GET|POST`, and a path that is a pattern without anchors. */
export function route(methods: string, path: string, answer: Route['answer']): Route {
  return { methods: methods.split('|'), pattern: new RegExp(`^${path}$`), answer };
}

/** Answers once the test calls `release`. */
async function held(_: SampleRequest, response: ServerResponse, state: BackendState): Promise<void> {
  await state.released();
  answerJson(response, 200, { held: true });
}

function document({ headers }: SampleRequest, response: ServerResponse): void {
  const { etag, 'last-modified': date } = DOCUMENT_HEADERS;
  for (const [name, value] of Object.entries(DOCUMENT_HEADERS)) response.setHeader(name, value);
  const { range, 'if-match': match, 'if-none-match': noneMatch, 'if-modified-since': since } = headers;
  const unchanged = noneMatch === undefined ? since === date : noneMatch.includes(etag);
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
  if (match !== undefined && match !== etag) response.writeHead(412).end();
  else if (unchanged) response.writeHead(304).end();
  else if (from === undefined || to === undefined) answerBytes(response, 200, 'text/plain', DOCUMENT);
  else if (Number(from) >= DOCUMENT.length)
    response.writeHead(416, { 'content-range': `bytes */${DOCUMENT.length}` }).end();
  else {
    response.setHeader('content-range', `bytes ${from}-${to}/${DOCUMENT.length}`);
    answerBytes(response, 206, 'text/plain', DOCUMENT.subarray(Number(from), Number(to) + 1));
  }
}

function fail({ url }: SampleRequest, response: ServerResponse): void {
  const status = Number(/^\/fail\/(\d{3})/.exec(url)?.[1]);
  answerJson(response, status, { error: 'the merchant says no', secret: 'internal-detail' });
}

function flaky({ url, idempotencyKey }: SampleRequest, response: ServerResponse, state: BackendState): void {
  const id = `${url} ${idempotencyKey ?? ''}`;
  const left = state.failuresLeft.get(id) ?? Number(/^\/flaky\/(\d+)/.exec(url)?.[1]);
  state.failuresLeft.set(id, left - 1);
  if (left > 0) answerJson(response, 500, { error: 'not yet' });
  else answerJson(response, 200, { delivered: true });
}

/** xorshift32 from a fixed seed. */
function deterministicBytes(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  let state = 0x9e3779b9;
  for (let at = 0; at < size; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state & 0xff;
  }
  return bytes;
}
