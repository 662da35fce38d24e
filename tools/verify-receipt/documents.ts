/** Finds what is signed in the documents that a buyer has kept. */

import { parseStrictJson } from '../../src/json/strict.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';
import { NotGenuine, type Signed } from './signed.ts';

/** Signed texts of a document, and what stands beside them without a signature. */
export interface Kept {
  readonly signed: readonly string[];
  /** What a response says of the payment itself; it must not differ from what is signed. */
  readonly response: JsonObject | undefined;
}

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const EXTENSION = 'offer-receipt';

/**
 * Reads a PAYMENT-RESPONSE or PAYMENT-REQUIRED header or its JSON, the answer of /api/purchases, or
 * one compact JWS.
 * @throws NotGenuine for what is none of them
 */
export function readKept(content: string): Kept {
  const text = content.trim();
  if (COMPACT.test(text)) return { signed: [text], response: undefined };
  const document = jsonOf(text) ?? jsonOf(Buffer.from(text, 'base64').toString('utf8'));
  if (!isObject(document)) throw new NotGenuine('the file has no header, JSON or JWS of a gateway');
  const payment = objectAt(document, 'payment');
  const response = payment ?? ('transaction' in document ? document : undefined);
  const signed = [...signedIn(document), ...(payment === undefined ? [] : signedIn(payment))];
  const { statement } = document;
  if (typeof statement === 'string') signed.push(statement);
  if (signed.length === 0) throw new NotGenuine('nothing in the file is signed');
  return { signed, response };
}

/** Receipts and offers of the extension, and of a document that is one of them. */
function signedIn(document: JsonObject): string[] {
  const info = objectAt(objectAt(objectAt(document, 'extensions'), EXTENSION), 'info');
  const offers = info?.['offers'];
  const entries = [document, objectAt(info, 'receipt'), ...(Array.isArray(offers) ? offers.filter(isObject) : [])];
  return entries.flatMap((entry) =>
    entry?.['format'] === 'jws' && typeof entry['signature'] === 'string' ? [entry['signature']] : [],
  );
}

function objectAt(value: JsonObject | undefined, name: string): JsonObject | undefined {
  const member = value?.[name];
  return isObject(member) ? member : undefined;
}

function jsonOf(text: string): Json | undefined {
  try {
    return parseStrictJson(Buffer.from(text));
  } catch {
    return undefined;
  }
}

/** The members that documents of one purchase have alike. */
function purchaseOf({ kind, payload }: Signed): JsonObject {
  if (kind === 'offer') return pick(payload, ['resourceUrl', 'network']);
  if (kind === 'receipt') return pick(payload, ['resourceUrl', 'network', 'payer', 'transaction']);
  const { receiptId, resourceUrl } = payload;
  return {
    ...(receiptId === undefined ? {} : { receiptId }),
    ...(resourceUrl === undefined ? {} : { resourceUrl }),
    ...pick(objectAt(payload, 'payment') ?? {}, ['network', 'payer', 'transaction']),
  };
}

/** What is kept together must be of one purchase. @throws NotGenuine */
export function checkTogether(signed: readonly Signed[], { response }: Pick<Kept, 'response'>): void {
  const beside = response === undefined ? {} : pick(response, ['network', 'payer', 'transaction', 'receiptId']);
  const known = new Map<string, Json>(Object.entries(beside).filter(([, value]) => value !== ''));
  for (const one of signed)
    for (const [name, value] of Object.entries(purchaseOf(one))) {
      const other = known.get(name);
      if (other !== undefined && other !== value) throw new NotGenuine(`the file has two values of ${name}`);
      known.set(name, value);
    }
}

function pick(from: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = from[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
