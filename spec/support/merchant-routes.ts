import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** One request as the merchant received it. */
export interface MerchantRequest {
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

/** What the routes share between requests. */
export interface MerchantStage {
  /** Failures still to come, by path and idempotency key. */
  readonly failuresLeft: Map<string, number>;
  released(): Promise<void>;
}

interface Route {
  readonly method: string;
  readonly pattern: RegExp;
  answer(request: MerchantRequest, response: ServerResponse, stage: MerchantStage): void | Promise<void>;
}

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

/** Everything the sample merchant serves. Bodies are JSON unless the path says otherwise. */
export const MERCHANT_ROUTES: readonly Route[] = [
  route('GET', '/reports/[^/]+', ({ url }, response) => {
    const city = decodeURIComponent(url.split('?')[0]?.split('/')[2] ?? '');
    json(response, 200, { city, currency: 'EUR', price: '12.50', volume: 340 });
  }),
  route('GET', '/cities', (_, response) => json(response, 200, { cities: ['Berlin', 'Lisboa', 'São Paulo'] })),
  route('GET', '/prices\\.csv', (_, response) => {
    send(response, 200, 'text/csv; charset=utf-8', Buffer.from('city,price\r\nBerlin,12.50\r\nSão Paulo,9.90\r\n'));
  }),
  route('GET', '/archive\\.bin', (_, response) => send(response, 200, 'application/octet-stream', archive)),
  route('GET', '/greeting', (_, response) => {
    response.setHeader('content-language', 'de');
    send(response, 200, 'text/plain; charset=utf-8', Buffer.from('Grüß Gott\n'));
  }),
  route('GET', '/noisy', (_, response) => {
    response.writeHead(200, NOISY_HEADERS).end('{"noisy":true}');
  }),
  route('GET', '/nothing', (_, response) => {
    response.writeHead(204).end();
  }),
  /** `chunks` pieces of ten bytes, `everyMs` apart, without a content length. */
  route('GET', '/slow', async ({ url }, response) => {
    const { searchParams } = new URL(url, 'http://merchant');
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
    const { searchParams } = new URL(url, 'http://merchant');
    const bytes = deterministicBytes(Math.min(Number(searchParams.get('size') ?? 0), 64 * 1024 * 1024));
    if (searchParams.get('undeclared') !== 'true') return send(response, 200, 'application/octet-stream', bytes);
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    response.write(bytes);
    response.end();
  }),
  route('POST', '/echo', ({ headers, body }, response) => {
    send(response, 200, headers['content-type'] ?? 'application/octet-stream', body);
  }),
  route('POST', '/echo/headers', ({ rawHeaders }, response) => json(response, 200, { rawHeaders })),
  route('GET', '/echo/headers', ({ rawHeaders }, response) => json(response, 200, { rawHeaders })),
  route('GET', '/fail/\\d{3}', fail),
  route('POST', '/fail/\\d{3}', fail),
  /** Fails so many times for one idempotency key, then answers. */
  route('GET', '/flaky/\\d+', flaky),
  route('POST', '/flaky/\\d+', flaky),
  route('GET', '/redirect', (_, response) => {
    response.writeHead(302, { location: '/reports/Berlin' }).end();
  }),
  /** Breaks the connection before the head. */
  route('GET', '/reset', (_, response) => {
    response.socket?.resetAndDestroy();
  }),
  route('POST', '/reset', (_, response) => {
    response.socket?.resetAndDestroy();
  }),
  /** Promises 1,000 bytes, sends 10 and breaks off. */
  route('GET', '/broken', (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '1000' });
    response.write('0123456789', () => response.socket?.destroy());
  }),
  route('GET', '/silent', () => undefined),
  route('GET', '/held', held),
  route('POST', '/held', held),
];

/** What every other path gets. */
export const NOT_FOUND: Pick<Route, 'answer'> = {
  answer: (_, response) => json(response, 404, { error: 'no such path' }),
};

function route(method: string, path: string, answer: Route['answer']): Route {
  return { method, pattern: new RegExp(`^${path}$`), answer };
}

/** Answers once the test lets it. */
async function held(_: MerchantRequest, response: ServerResponse, stage: MerchantStage): Promise<void> {
  await stage.released();
  json(response, 200, { held: true });
}

function fail({ url }: MerchantRequest, response: ServerResponse): void {
  const status = Number(/^\/fail\/(\d{3})/.exec(url)?.[1]);
  json(response, status, { error: 'the merchant says no', secret: 'internal-detail' });
}

function flaky({ url, idempotencyKey }: MerchantRequest, response: ServerResponse, stage: MerchantStage): void {
  const id = `${url} ${idempotencyKey ?? ''}`;
  const left = stage.failuresLeft.get(id) ?? Number(/^\/flaky\/(\d+)/.exec(url)?.[1]);
  stage.failuresLeft.set(id, left - 1);
  if (left > 0) json(response, 500, { error: 'not yet' });
  else json(response, 200, { delivered: true });
}

function json(response: ServerResponse, status: number, body: object): void {
  send(response, status, 'application/json', Buffer.from(JSON.stringify(body)));
}

function send(response: ServerResponse, status: number, type: string, body: Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body);
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
