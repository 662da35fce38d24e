/** The ways in which the sample checkout backend fails or answers wrongly. */

import type { ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { isObject, type JsonObject } from '../../../src/json/json.ts';
import type { CheckoutAnswer } from './checkouts.ts';

/** A fault of one call. `acts`: whether the backend first does what the call asks for. */
export type Fault =
  /** Answers this status with an Error document of its own. */
  | { readonly kind: 'status'; readonly status: number; readonly acts: boolean; readonly document?: JsonObject }
  /** Never answers. */
  | { readonly kind: 'hang'; readonly acts: boolean }
  /** Answers properly, once this is resolved. */
  | { readonly kind: 'wait'; readonly acts: 'before' | 'after'; readonly until: Promise<void> }
  | { readonly kind: 'reset'; readonly acts: boolean }
  /** `location`: an address that must never be called. */
  | { readonly kind: 'redirect'; readonly status: 301 | 302 | 303 | 307 | 308; readonly location: string }
  /** Acts, and then answers in this form. */
  | { readonly kind: 'answer'; readonly form: Form }
  /** Acts, and changes the document. */
  | { readonly kind: 'document'; readonly edit: (document: JsonObject) => JsonObject };

/** Answers that no gateway may pass on. The first half of `broken-off` is all that comes. */
export type Form =
  | 'html'
  | 'gzip'
  | 'empty'
  | 'endless'
  | 'oversized'
  | 'broken-off'
  | 'duplicate-members'
  | 'byte-order-mark'
  | 'wrong-status';

/** Documents that are wrong in one way each. */
export const EDITS = {
  'wrong-id': (document) => ({ ...document, id: 'cs_of_another_buyer' }),
  'empty-extensions': (document) => {
    const { capabilities } = document;
    return { ...document, capabilities: { ...(isObject(capabilities) ? capabilities : {}), extensions: [] } };
  },
  'in-progress': (document) => ({ ...document, status: 'in_progress' }),
  'without-totals': ({ totals: _, ...document }) => document,
  'unknown-member': (document) => ({ ...document, surprise: true }),
  'raw-html': (document) => ({
    ...document,
    messages: [{ type: 'info', content_type: 'markdown', content: 'Hello <script>alert(1)</script>' }],
  }),
} as const satisfies Record<string, (document: JsonObject) => JsonObject>;

/** Larger than any document may be, bytes. */
const OVERSIZED_BYTES = 262_145;

/** Does what the call asks for, or what the fault names. */
export async function behave(
  fault: Fault | undefined,
  act: () => CheckoutAnswer,
  response: ServerResponse,
): Promise<void> {
  if (fault === undefined) return sendDocument(response, act());
  switch (fault.kind) {
    case 'status': {
      if (fault.acts) act();
      const document = { type: 'processing_error', code: 'merchant_says_no', message: 'merchant: no' };
      return sendDocument(response, { status: fault.status, document: fault.document ?? document });
    }
    case 'hang':
      if (fault.acts) act();
      return;
    case 'wait': {
      const early = fault.acts === 'before' ? act() : undefined;
      await fault.until;
      return sendDocument(response, early ?? act());
    }
    case 'reset':
      if (fault.acts) act();
      response.socket?.resetAndDestroy();
      return;
    case 'redirect':
      response.writeHead(fault.status, { location: fault.location }).end();
      return;
    case 'answer':
      return sendForm(response, fault.form, act());
    case 'document': {
      const { status, document } = act();
      return sendDocument(response, { status, document: fault.edit(document) });
    }
  }
}

/** Sends an answer as it should be. */
export function sendDocument(response: ServerResponse, { status, document }: CheckoutAnswer): void {
  send(response, status, JSON.stringify(document));
}

/** Writes an answer in one of the forms. Resolves when nothing more will come. */
async function sendForm(response: ServerResponse, form: Form, { status, document }: CheckoutAnswer): Promise<void> {
  const body = JSON.stringify(document);
  switch (form) {
    case 'html':
      return send(response, status, '<!doctype html><title>Shop</title>', 'text/html');
    case 'gzip':
      response.setHeader('content-encoding', 'gzip');
      return send(response, status, gzipSync(body));
    case 'empty':
      return send(response, status, '');
    case 'oversized':
      return send(response, status, padded(document, OVERSIZED_BYTES));
    case 'broken-off':
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length });
      response.write(body.slice(0, body.length / 2), () => response.destroy());
      return;
    case 'duplicate-members':
      return send(response, status, body.replace(/^\{/, '{"status":"canceled",'));
    case 'byte-order-mark':
      return send(response, status, `\ufeff${body}`);
    case 'wrong-status':
      return send(response, status === 201 ? 200 : 202, body);
    case 'endless':
      return endless(response, status);
  }
}

/** A document with white space behind it, so many bytes in all. */
export function padded(document: JsonObject, bytes: number): Buffer {
  const body = Buffer.alloc(bytes, ' ');
  body.write(JSON.stringify(document));
  return body;
}

function send(response: ServerResponse, status: number, body: string | Buffer, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}

/** Chunk after chunk until the other side ends the connection. */
async function endless(response: ServerResponse, status: number): Promise<void> {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.write('{"id":"');
  const chunk = 'x'.repeat(16_384);
  while (!response.destroyed) {
    if (!response.write(chunk)) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
    await turn();
  }
}
