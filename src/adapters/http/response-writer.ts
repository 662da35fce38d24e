/** Writes outcomes as plain HTTP (specification 4, contract 1 and 3) and streams the answer. */

import type { Response } from 'express';
import { type BackendAnswer, BackendError } from '../../backend/backend-exchange.ts';
import { BODYLESS_STATUSES, relayedHeaders } from '../../backend/header-policy.ts';
import type { Sent } from '../../payments/ledger/payment-receipt.ts';
import { type Challenge, type HeadRoom, USUAL_ROOM } from '../../payments/x402/wire/challenge.ts';
import { shorterResponses } from '../../payments/x402/wire/payment-response.ts';
import { encodeHeader } from '../../payments/x402/wire/proof.ts';
import { PAYMENT_REQUIRED, PAYMENT_RESPONSE, type PaymentResponse } from '../../payments/x402/wire/types.ts';
import type { PaymentAnnotations, Relayed, RelayOptions, ResponseWriter } from '../../pipeline/call.ts';
import { note, onceClosed } from '../../server/http/access-record.ts';
import { takesTrailers } from '../../server/http/request.ts';
import {
  acceptsPage,
  endWith,
  fieldBytes,
  fieldsBytes,
  PAGE_HEADERS,
  sendError,
  sendJson,
  sendText,
  varyByAccept,
} from '../../server/http/respond.ts';

/** How long a caller may take to read the buffered end of an answer, milliseconds. */
const LAST_BYTES_MS = 60_000;

/** The state of an answer of which certainly no byte left. */
export const NOTHING_SENT: Sent = { begun: false, bytes: 0, of: 0 };

/** Marks an answer that was delivered before (contract 4.3). */
const IDEMPOTENT_REPLAYED = 'idempotent-replayed';

/** Carries the signed statement of a delivery, behind the body. */
const DELIVERY_STATEMENT = 'agent-commerce-delivery';

interface WriterOptions {
  /** A free answer keeps its fields about ranges. */
  readonly ranges?: boolean;
  /** For the fields of payment and merchant in a head. */
  readonly room?: HeadRoom;
  /** Makes the page of a 402 for people; absent: every 402 is JSON. */
  readonly page?: (challenge: Challenge) => string;
}

/** Writes the outcome of one call; people get its failures as pages. */
export function httpResponseWriter(
  res: Response,
  requestId: string,
  { ranges = false, room = USUAL_ROOM, page }: WriterOptions = {},
): ResponseWriter {
  const announce = (
    { payment, mandateReceipt }: PaymentAnnotations,
    merchant: Record<string, string> = {},
    left = room.plain,
  ): Record<string, string> => {
    if (res.headersSent) return merchant;
    const head = fittingHead(left, merchant, payment, mandateReceipt);
    if (head.leftOut.length > 0) note(res, 'leftOut', head.leftOut.join(' '));
    if (head.payment !== undefined) res.setHeader(PAYMENT_RESPONSE, head.payment);
    if (mandateReceipt !== undefined) res.setHeader(MANDATE_RECEIPT, mandateReceipt);
    return head.merchant;
  };
  return {
    // The answer is streamed, so only the bound of the resource applies.
    maxAnswerBytes: Number.POSITIVE_INFINITY,
    paymentRequired(challenge, payment) {
      const { header, body } = challenge;
      const bytes = fieldBytes(PAYMENT_REQUIRED, header);
      if (payment !== undefined) announce({ payment }, {}, room.plain - bytes);
      if (header !== '') res.setHeader(PAYMENT_REQUIRED, header);
      res.setHeader('cache-control', 'no-store');
      varyByAccept(res);
      // The page says that its head has the offer.
      const fits = header !== '' && bytes <= room.page;
      if (page !== undefined && fits && acceptsPage(res.req.headers)) sendText(res, 402, PAGE_HEADERS, page(challenge));
      else sendJson(res, 402, body);
    },
    failed(error, context) {
      announce(context);
      sendError(res, error, requestId, context.resourceId);
    },
    async relay(answer, annotations) {
      const { payment, replayed = false, statement, sending } = annotations;
      if (replayed && !res.headersSent) res.setHeader(IDEMPOTENT_REPLAYED, 'true');
      const trailer = takesTrailers(res.req) && !BODYLESS_STATUSES.has(answer.status) ? statement : undefined;
      const relayed = relayedHeaders(answer.headers, { free: payment === undefined, ranges, status: answer.status });
      return relay(res, answer, { head: announce(annotations, relayed), trailer, sending });
    },
  };
}

interface Relaying {
  /** The merchant's fields, as far as there is room. */
  readonly head: Record<string, string>;
  /** The statement behind the body; undefined: none. */
  readonly trailer: RelayOptions['statement'];
  readonly sending: RelayOptions['sending'];
}

/**
 * Sends the answer to the caller, byte for byte: a short one whole with its head, any other as a
 * stream. When the caller leaves, the rest is still read: the backend finishes its work for a paid
 * call, and its socket stays usable. After the head, a broken answer can only be reported by
 * breaking the connection.
 */
async function relay(res: Response, answer: BackendAnswer, relaying: Relaying): Promise<Relayed> {
  const { whole } = answer;
  if (whole !== undefined) return relayWhole(res, answer, whole, relaying);
  const { body } = answer;
  const sent: Sending = { ...NOTHING_SENT };
  let broken: BackendError | undefined;
  body.once('error', (error: unknown) => {
    broken = error instanceof BackendError ? error : new BackendError('transport', true, error);
  });
  if (!res.destroyed) {
    res.writeHead(answer.status, headOf(relaying));
    if (res.req.method === 'HEAD') return endAtHead(res, body);
    // Trailers must be added before the pipe ends the answer.
    if (relaying.trailer !== undefined) body.once('end', () => addTrailer(res, relaying));
    if (await sendThrough(res, body, relaying.sending, sent)) return { kind: 'finished' };
  }
  await drain(body);
  // `aborted`: the gateway ended a free call whose caller left.
  if (broken === undefined || broken.reason === 'aborted')
    return { kind: 'client_gone', ...(relaying.sending === undefined ? {} : { sent }) };
  return { kind: 'broken', error: broken, sent: { ...sent, of: Number(answer.headers['content-length'] ?? 0) } };
}

function headOf({ head, trailer }: Relaying): Record<string, string> {
  if (trailer === undefined) return head;
  // Only a body in chunks can have trailers (RFC 9112 7.1.2).
  const { 'content-length': _length, ...chunked } = head;
  return { ...chunked, trailer: DELIVERY_STATEMENT };
}

function addTrailer(res: Response, { trailer }: Relaying): void {
  const statement = trailer?.();
  if (statement !== undefined) res.addTrailers({ [DELIVERY_STATEMENT]: statement });
}

/** Sends an answer that cannot break any more, in one piece with its head. */
async function relayWhole(
  res: Response,
  answer: BackendAnswer,
  bytes: Uint8Array,
  relaying: Relaying,
): Promise<Relayed> {
  const isHead = res.req.method === 'HEAD';
  if (relaying.sending !== undefined && !isHead && !res.destroyed && !(await relaying.sending())) res.destroy();
  if (res.destroyed) return { kind: 'client_gone', sent: NOTHING_SENT };
  const head = headOf(relaying);
  const { trailer } = relaying;
  if (trailer === undefined && !BODYLESS_STATUSES.has(answer.status)) head['content-length'] = String(bytes.byteLength);
  res.writeHead(answer.status, head);
  if (isHead) {
    res.end();
    return { kind: 'finished' };
  }
  addTrailer(res, relaying);
  endWith(res, bytes);
  if (await isSent(res)) return { kind: 'finished' };
  return { kind: 'client_gone', sent: { begun: true, bytes: bytes.byteLength, of: bytes.byteLength } };
}

/** Whether the operating system gets the last byte of an answer that has ended. */
export function isSent(res: Response): true | Promise<boolean> {
  // Mostly the operating system took all bytes at once, and no event comes. Behind another answer,
  // or on a connection that is ending, no byte was written yet.
  if (res.socket?.writable === true && res.writableLength === 0) return true;
  return new Promise((resolve) => {
    const timeout = setTimeout(() => res.destroy(), LAST_BYTES_MS);
    res.once('finish', () => resolve(true));
    onceClosed(res, () => {
      clearTimeout(timeout);
      resolve(res.writableFinished);
    });
  });
}

/** A HEAD reaches free resources only, so the backend may stop: no purchase needs its answer. */
function endAtHead(res: Response, body: BackendAnswer['body']): Relayed {
  res.end();
  body.destroy();
  return { kind: 'finished' };
}

/**
 * Resolves true when the operating system has the last byte. Not `pipeline`: it would destroy the
 * backend's answer together with the caller's connection. `sent` counts the bytes of a paid answer.
 */
function sendThrough(
  res: Response,
  body: BackendAnswer['body'],
  sending: RelayOptions['sending'],
  sent: Sending,
): Promise<boolean> {
  return new Promise((resolve) => {
    let stop: (() => void) | undefined;
    // The timeout of the exchange covers the backend's last byte; from there on this timer ends the
    // connection of a caller that stopped reading.
    const limitReading = (): void => {
      const timeout = setTimeout(() => res.destroy(), LAST_BYTES_MS);
      onceClosed(res, () => clearTimeout(timeout));
    };
    res.once('finish', () => resolve(true));
    onceClosed(res, () => {
      body.unpipe(res);
      stop?.();
      // A timer that starts after the close would not be cleared.
      body.off('end', limitReading);
      resolve(res.writableFinished);
    });
    body.once('error', () => res.destroy());
    body.once('end', limitReading);
    if (sending === undefined) body.pipe(res);
    else stop = sendAfter(sending, body, res, sent);
  });
}

/** `Sent`, writable: `sendAfter` counts the bytes of a paid answer that came and that left. */
type Sending = { -readonly [Name in keyof Sent]: Sent[Name] };

/**
 * The head leaves with the first bytes of the body, or with its end: both wait for `sending`. Until
 * then a listener for `readable` keeps the body from flowing to any reader; the listeners for
 * `data` and `end` replace it in the same turn. An empty body emits `readable` too.
 *
 * The last chunk ends the answer once the body has ended and the operating system has all earlier
 * chunks: a caller that leaves before lacks that chunk.
 * @returns removes the listeners
 */
function sendAfter(
  sending: () => Promise<boolean>,
  body: BackendAnswer['body'],
  res: Response,
  sent: Sending,
): () => void {
  let isAsked = false;
  let held: Buffer | undefined;
  const count = (chunk: Buffer): void => {
    sent.of += chunk.byteLength;
  };
  const hand = (chunk: Buffer | undefined): void => {
    sent.begun = true;
    sent.bytes += chunk?.byteLength ?? 0;
  };
  const hold = (chunk: Buffer): void => {
    const before = held;
    held = chunk;
    if (before === undefined) return;
    hand(before);
    if (res.write(before)) return;
    body.pause();
    res.once('drain', () => body.resume());
  };
  const end = (): void => {
    const last = (error?: Error | null): void => {
      if (error instanceof Error || res.destroyed) return;
      hand(held);
      res.end(held);
    };
    if (res.writableLength === 0) last();
    else res.write('', last);
  };
  const release = (): void => {
    body.off('readable', ask);
    body.off('end', ask);
  };
  const ask = async (): Promise<void> => {
    if (isAsked) return;
    isAsked = true;
    if (!(await sending())) res.destroy();
    release();
    if (res.destroyed) return;
    if (body.readableEnded) end();
    else body.on('data', hold).once('end', end).resume();
  };
  body.on('data', count).on('readable', ask).on('end', ask);
  return () => {
    release();
    body.off('data', hold).off('end', end);
  };
}

/** Reads on to the end or the failure of the answer, and discards it. */
async function drain(body: BackendAnswer['body']): Promise<void> {
  if (body.closed) return;
  body.resume();
  await new Promise<void>((resolve) => body.once('close', resolve));
}

/** Carries the signed receipt of a mandate (ap2 13). */
const MANDATE_RECEIPT = 'agent-authorization-receipt';

/** Bytes that a repeated answer, an answer in place and a trailer add to the usual fields. */
const BESIDE = fieldsBytes({
  'idempotent-replayed': 'true',
  'accept-ranges': 'none',
  'transfer-encoding': 'chunked',
  trailer: 'agent-commerce-delivery',
});

/**
 * Fits the fields of an answer into `room` bytes. First PAYMENT-RESPONSE loses its signed receipt,
 * next the members that its reader does not need; then the merchant's fields go, the longest first.
 */
export function fittingHead(
  room: number,
  merchant: Record<string, string>,
  payment: PaymentResponse | undefined,
  mandateReceipt = '',
): {
  readonly merchant: Record<string, string>;
  readonly payment: string | undefined;
  readonly leftOut: readonly string[];
} {
  let left = room - BESIDE - fieldsBytes(merchant) - fieldBytes(MANDATE_RECEIPT, mandateReceipt);
  const whole = payment && encodeHeader(payment);
  if (whole === undefined ? left >= 0 : fieldBytes(PAYMENT_RESPONSE, whole) <= left)
    return { merchant, payment: whole, leftOut: [] };
  const forms = payment === undefined ? [] : [whole ?? '', ...shorterResponses(payment)];
  const needed = forms.at(-1);
  const least = needed === undefined ? 0 : fieldBytes(PAYMENT_RESPONSE, needed);
  const kept = Object.entries(merchant).sort(([, one], [, other]) => one.length - other.length);
  const leftOut: string[] = [];
  while (left < least) {
    const longest = kept.pop();
    if (longest === undefined) break;
    leftOut.push(longest[0]);
    left += fieldBytes(...longest);
  }
  const fitting = forms.find((form) => fieldBytes(PAYMENT_RESPONSE, form) <= left);
  return { merchant: Object.fromEntries(kept), payment: fitting, leftOut };
}
