/** A checkout backend that quotes each request in answers that the gateway must not relay. */

import type { ServerResponse } from 'node:http';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import type { HttpExchange } from '../support/http-server.ts';

/** Writes an answer around the quoted request and a secret of the backend. */
type Quoting = (response: ServerResponse, quoted: string) => void;

const JSON_HEAD = { 'content-type': 'application/json' } as const;

function document(status: number, more: object = {}): Quoting {
  return (response, quoted) => {
    const body = { type: 'invalid_request', code: 'invalid', message: quoted, param: '$', ...more };
    response.writeHead(status, headOf(quoted)).end(JSON.stringify(body));
  };
}

/** Every kind of bad answer that quotes the request, and what the gateway answers its caller. */
export const QUOTATIONS: Readonly<Record<string, readonly [quoting: Quoting, status: number, code: string]>> = {
  'a failure': [document(500), 502, 'processing_error'],
  'a refusal of the gateway': [document(401), 502, 'processing_error'],
  'too much': [document(429), 502, 'processing_error'],
  'a refusal': [document(400), 422, 'invalid_request_body'],
  'another refusal': [document(422, { unknown: true }), 422, 'invalid_request_body'],
  '3D Secure': [document(422, { code: 'requires_3ds' }), 422, 'invalid_request_body'],
  'no session': [document(404), 404, 'checkout_session_not_found'],
  'a conflict': [document(409), 409, 'checkout_session_conflict'],
  'not allowed': [document(405), 502, 'processing_error'],
  'a redirect': [
    (response, quoted) => void response.writeHead(302, { location: `http://127.0.0.1:1/?${quoted}` }).end(),
    502,
    'processing_error',
  ],
  'a page': [
    (response, quoted) => void response.writeHead(200, { 'content-type': `text/html; x=${quoted}` }).end(quoted),
    502,
    'processing_error',
  ],
  'a coding': [
    (response, quoted) =>
      void response.writeHead(200, { ...JSON_HEAD, 'content-encoding': quoted.slice(0, 200) }).end(quoted),
    502,
    'processing_error',
  ],
  'no JSON': [
    (response, quoted) => void response.writeHead(200, JSON_HEAD).end(`{"${quoted}`),
    502,
    'processing_error',
  ],
  'a member twice': [
    (response, quoted) => {
      const member = `${JSON.stringify(quoted)}:${JSON.stringify(quoted)}`;
      response.writeHead(200, JSON_HEAD).end(`{${member},${member}}`);
    },
    502,
    'processing_error',
  ],
  'another document': [
    (response, quoted) => {
      const body = { [quoted]: quoted, id: quoted, status: quoted, messages: [{ type: quoted, content: quoted }] };
      response.writeHead(200, JSON_HEAD).end(JSON.stringify(body));
    },
    502,
    'processing_error',
  ],
  'no answer of HTTP': [
    (response, quoted) => void response.socket?.end(`HTTP/1.1 ${quoted}\r\n\r\n`),
    502,
    'processing_error',
  ],
  'half an answer': [
    (response, quoted) => {
      response.writeHead(200, { ...JSON_HEAD, 'content-length': 100_000 });
      response.write(quoted, () => response.destroy());
    },
    502,
    'processing_error',
  ],
};

/** Starts the sample backend; after `quote` the next POST gets this answer. */
export async function startQuotingMerchant(
  secret: string,
): Promise<CheckoutBackend & { quote(quoting: Quoting): void }> {
  let next: Quoting | undefined;
  const backend = await startCheckoutBackend({
    before(exchange) {
      // A good answer has a field of the backend, too.
      exchange.response.setHeader('x-debug', secret);
      if (next === undefined || exchange.request.method !== 'POST') return false;
      const quoting = next;
      next = undefined;
      quoting(exchange.response, `${secret} ${textOf(exchange)}`);
      return true;
    },
  });
  return {
    ...backend,
    quote(quoting) {
      next = quoting;
    },
  };
}

/** A request on one line of ASCII, so that it fits into every field. */
function textOf({ request, body }: HttpExchange): string {
  const whole = `${request.url} ${request.rawHeaders.join(' ')} ${body.toString()}`;
  return whole.replaceAll(/[^\x20-\x7e]/g, '');
}

function headOf(quoted: string): Readonly<Record<string, string>> {
  return { ...JSON_HEAD, 'x-debug': quoted, 'retry-after': quoted, 'www-authenticate': quoted, 'request-id': quoted };
}
