/** How a resource is asked for and paid, whatever protocol carries it. */

import type { PaymentRequired } from '@x402/core/types';
import { RECEIPT_ID } from '../../src/receipts/receipt.ts';

/** One way to call one resource: each `send` is the same call, with a payment or without. */
export interface Channel {
  /** @throws Error when no answer came */
  send(payment?: SignedPayment): Promise<Reply>;
}

/** A payment that moves money at most once, however often it is sent. */
export interface SignedPayment {
  /** Base64 of the JSON of a PaymentPayload. */
  readonly proof: string;
  /** With the proof it names one purchase (contract 4.4). */
  readonly idempotencyKey: string;
}

/** An answer, in no protocol's words. */
export interface Reply {
  /** The resource was delivered. */
  readonly ok: boolean;
  /** Such as `200` or `TASK_STATE_COMPLETED`. */
  readonly status: string;
  /** Why nothing was delivered, in one line; undefined where the answer does not say. */
  readonly why: string | undefined;
  readonly contentType: string | undefined;
  readonly body: Uint8Array;
  /** What is asked for; undefined where nothing is. */
  readonly challenge: Challenge | undefined;
  readonly settlement: Settlement | undefined;
  /** How long to wait before the same call is sent again, milliseconds; undefined: it is final. */
  readonly againInMs: number | undefined;
}

/** The terms of a payment. */
export interface Challenge {
  readonly document: PaymentRequired;
  /** Why the last proof was refused, by its machine token or in words. */
  readonly refusal: string | undefined;
  readonly needsMandate: boolean;
  /** What the seller calls the token of its price; undefined where it does not say. */
  readonly currency: string | undefined;
}

/** What an answer says of the payment; undefined is what has not the form that it must have. */
export interface Settlement {
  readonly success: boolean;
  readonly transaction: string | undefined;
  readonly receiptId: string | undefined;
}

type Members = Readonly<Record<string, unknown>>;

/** Retry after this long where an answer names no time, milliseconds. */
const USUAL_WAIT_MS = 1_000;
/** The sentence of a 402 for people and models. */
const PRICE_SENTENCE = /^Payment of (?:at least )?\S+ (.{1,64}?)(?: or .*)? is required for /;
const TRANSACTION = /^0x[0-9a-f]{64}$/i;
/** Longest name of a currency in a configuration, characters. */
const LONGEST_CURRENCY = 64;
/** Longest text of a merchant's answer that is told, characters. */
const MOST_TOLD = 240;
/** Answers of a backend that pass: late, too early, too many. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429]);

/** Empty for what is no object. */
export function members(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** The value of a JSON text; undefined for any other text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value of base64 of a JSON text; undefined for any other text. */
export function base64JsonOf(text: string): unknown {
  return jsonOf(Buffer.from(text, 'base64').toString());
}

/** An answer as JSON that can be written again, or as text where it is such, else as base64. */
export function bodyOf(bytes: Uint8Array): { readonly body: unknown; readonly encoding?: 'base64' } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    try {
      const body: unknown = JSON.parse(text);
      JSON.stringify(body);
      return { body };
    } catch {
      return { body: text };
    }
  } catch {
    return { body: Buffer.from(bytes).toString('base64'), encoding: 'base64' };
  }
}

/**
 * The challenge in a document, with what the gateway says beside it, in `envelope` and `sentence`.
 * Undefined where nothing can be paid under version 2 of x402.
 */
export function challengeOf(document: unknown, envelope: unknown, sentence = ''): Challenge | undefined {
  const { x402Version, accepts } = members(document);
  if (x402Version !== 2 || !Array.isArray(accepts) || accepts.length === 0) return undefined;
  const { error, refusal, authorization, payment } = members(envelope);
  const { currency = PRICE_SENTENCE.exec(sentence)?.[1] } = members(payment);
  const { reason, message } = members(refusal ?? error);
  return {
    document: document as PaymentRequired,
    refusal: typeof message === 'string' ? message : typeof reason === 'string' ? reason : undefined,
    needsMandate: members(authorization)['required'] !== undefined,
    currency: typeof currency === 'string' && currency.length <= LONGEST_CURRENCY ? currency : undefined,
  };
}

export function settlementOf(value: unknown): Settlement | undefined {
  const { success, transaction, receiptId } = members(value);
  if (typeof success !== 'boolean') return undefined;
  return {
    success,
    transaction: typeof transaction === 'string' && TRANSACTION.test(transaction) ? transaction : undefined,
    receiptId: typeof receiptId === 'string' && RECEIPT_ID.test(receiptId) ? receiptId : undefined,
  };
}

/** What the gateway says of a failure, and what the merchant's backend answered. */
export function whyOf(envelope: unknown): string | undefined {
  const { message, details } = members(envelope);
  const { status, backend } = members(details);
  const words = wordsOf(members(backend)['body']);
  const said = [
    ...(typeof status === 'number' ? [`The backend answered ${status}.`] : []),
    ...(words === undefined ? [] : [`It says: ${words}.`]),
    ...(typeof message === 'string' ? [message] : []),
  ].join(' ');
  return said === '' ? undefined : said;
}

/** Members in which services write what is wrong, the plainest first. */
const TELLING = ['message', 'detail', 'error_description', 'title', 'error'] as const;

/** The sentence in a merchant's error, else its JSON, without the point at its end. */
function wordsOf(body: unknown): string | undefined {
  if (body === undefined || body === null) return undefined;
  const told = TELLING.map((name) => members(body)[name]).find(
    (value) => (typeof value === 'string' && value !== '') || Object.keys(members(value)).length > 0,
  );
  if (told !== undefined) return wordsOf(told);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return text.length > MOST_TOLD ? `${text.slice(0, MOST_TOLD)}…` : text.replace(/\.$/, '');
}

/**
 * The gateway says of each failure whether the same call may come to something. What the backend
 * refuses as wrong it refuses again.
 */
export function waitOf(envelope: unknown, retryAfter: string | undefined): number | undefined {
  const { retryable, details } = members(envelope);
  const { status } = members(details);
  const isRefused = typeof status === 'number' && status >= 400 && status < 500 && !PASSING.has(status);
  if (retryable !== true || isRefused) return undefined;
  const seconds = Number(retryAfter);
  return seconds > 0 ? seconds * 1_000 : USUAL_WAIT_MS;
}
