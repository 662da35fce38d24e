import type { IncomingMessage, ServerResponse } from 'node:http';
import { type CheckoutMerchant, startCheckoutMerchant } from '../support/acp/merchant.ts';

/** What a merchant makes of all that it was sent: the whole request, and a secret of its own. */
type Quoting = (response: ServerResponse, quoted: string) => void;

const JSON_HEAD = { 'content-type': 'application/json' } as const;

function document(status: number, more: object = {}): Quoting {
  return (response, quoted) => {
    const body = { type: 'invalid_request', code: 'invalid', message: quoted, param: '$', ...more };
    response.writeHead(status, headOf(quoted)).end(JSON.stringify(body));
  };
}

/**
 * All ways in which a merchant says something back that is no good answer, quoting what it was
 * asked, and what the caller is told then.
 */
export const QUOTATIONS: Readonly<Record<string, readonly [say: Quoting, status: number, code: string]>> = {
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

/** The sample merchant, with an answer of its own for the next POST when it is told to quote. */
export async function startQuotingMerchant(secret: string): Promise<CheckoutMerchant & { quote(say: Quoting): void }> {
  let next: Quoting | undefined;
  const merchant = await startCheckoutMerchant({
    before(request, response) {
      // A good answer has fields of its own, too.
      response.setHeader('x-debug', secret);
      if (next === undefined || request.method !== 'POST') return false;
      const say = next;
      next = undefined;
      read(request).then((quoted) => say(response, `${secret} ${quoted}`));
      return true;
    },
  });
  return {
    ...merchant,
    quote(say) {
      next = say;
    },
  };
}

/** A request on one line of ASCII, so that it fits wherever it is quoted. */
async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const whole = `${request.url} ${request.rawHeaders.join(' ')} ${Buffer.concat(chunks).toString()}`;
  return whole.replaceAll(/[^\x20-\x7e]/g, '');
}

function headOf(quoted: string): Readonly<Record<string, string>> {
  return { ...JSON_HEAD, 'x-debug': quoted, 'retry-after': quoted, 'www-authenticate': quoted, 'request-id': quoted };
}
