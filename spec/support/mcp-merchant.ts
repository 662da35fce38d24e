import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A merchant for the tools of `mcp-shop.ts`. */
export interface McpMerchant {
  readonly url: string;
  /** Request targets in order of arrival. */
  readonly requests: readonly string[];
  stop(): Promise<void>;
}

/** The words that the conformance suite wants to hear from `test_simple_text`. */
export const SIMPLE_TEXT = 'This is a simple text response for testing.';
/** What `/misfit` answers: no schema that wants a number of degrees fits it. */
export const MISFIT = { city: 'Oslo', celsius: 'mild' } as const;
/** What `/cities` answers. */
export const CITIES: readonly string[] = ['Berlin', 'Lisboa', 'São Paulo'];

/** A picture, a sound and a document, as short as their formats allow to be recognised. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const WAV = Buffer.from('UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=', 'base64');
const PDF = Buffer.from('%PDF-1.7\n%%EOF\n');

type Answer = (request: IncomingMessage, response: ServerResponse, path: string) => void;

const ROUTES: readonly { readonly route: RegExp; readonly answer: Answer }[] = [
  { route: /^GET \/text$/, answer: (_, response) => json(response, 200, SIMPLE_TEXT) },
  { route: /^GET \/failing$/, answer: (_, response) => json(response, 500, { error: 'the merchant says no' }) },
  { route: /^GET \/cities$/, answer: (_, response) => json(response, 200, CITIES) },
  { route: /^GET \/misfit$/, answer: (_, response) => json(response, 200, MISFIT) },
  { route: /^GET \/picture$/, answer: (_, response) => send(response, 200, 'image/png', PNG) },
  { route: /^GET \/sound$/, answer: (_, response) => send(response, 200, 'audio/wav', WAV) },
  { route: /^GET \/document$/, answer: (_, response) => send(response, 200, 'application/pdf', PDF) },
  {
    route: /^GET \/weather\/[^/]+$/,
    answer: (_, response, path) =>
      json(response, 200, { city: decodeURIComponent(path.split('/')[2] ?? ''), celsius: 21 }),
  },
  {
    route: /^POST \/echo$/,
    answer: (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      request.pipe(response);
    },
  },
];

/** Starts the merchant on a free port of 127.0.0.1. */
export async function startMcpMerchant(): Promise<McpMerchant> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const { method = '', url = '' } = request;
    requests.push(url);
    const [path = ''] = url.split('?');
    const found = ROUTES.find(({ route }) => route.test(`${method} ${path}`));
    if (found === undefined) json(response, 404, { error: 'no such path' });
    else found.answer(request, response, path);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function json(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, 'application/json', Buffer.from(JSON.stringify(body)));
}

function send(response: ServerResponse, status: number, type: string, body: Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body);
}
