/** Finds what is signed in the documents that a buyer has kept. */

import { canonicalJson } from '../../src/json/canonical.ts';
import { parseStrictJson } from '../../src/json/strict.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/types.ts';
import { NotGenuine, type Signed } from './signed.ts';

/** Signed texts of a document, and what stands beside them without a signature. */
export interface Kept {
  readonly signed: readonly string[];
  /** What the document itself says of a purchase; it must not differ from what is signed. */
  readonly beside: readonly JsonObject[];
  /** What a 402 offers; only what is signed may be among it. */
  readonly accepts: readonly JsonObject[];
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
  if (COMPACT.test(text)) return { signed: [text], beside: [], accepts: [] };
  const document = jsonOf(text) ?? jsonOf(Buffer.from(text, 'base64').toString('utf8'));
  if (!isObject(document)) throw new NotGenuine('the file has no header, JSON or JWS of a gateway');
  const payment = objectAt(document, 'payment');
  const signed = [...signedIn(document), ...(payment === undefined ? [] : signedIn(payment))];
  const { statement } = document;
  if (typeof statement === 'string') signed.push(statement);
  if (signed.length === 0) throw new NotGenuine('nothing in the file is signed');
  const { accepts } = document;
  return {
    signed,
    beside: [saidOf(document), ...(payment === undefined ? [] : [saidOf(payment)])],
    accepts: Array.isArray(accepts) ? accepts.filter(isObject) : [],
  };
}

/** What a document says of a purchase without a signature; an empty text says nothing. */
function saidOf(document: JsonObject): JsonObject {
  const said = { ...pick(document, PURCHASE), ...refundOf(document) };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== ''));
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
const PURCHASE = ['receiptId', 'resourceId', 'state', 'network', 'payer', 'transaction'];
const OFFER = ['scheme', 'network', 'asset', 'payTo', 'amount'];
const INVOKE = /\/api\/resources\/([^/]+)\/invoke$/;

function purchaseOf({ kind, payload }: Signed): JsonObject {
  const named = pick(payload, ['resourceUrl']);
  const [, resourceId] = INVOKE.exec(String(payload['resourceUrl'])) ?? [];
  const resource = resourceId === undefined ? named : { ...named, resourceId };
  if (kind !== 'statement') return { ...resource, ...pick(payload, ['network', 'payer', 'transaction']) };
  const payment = pick(objectAt(payload, 'payment') ?? {}, ['network', 'payer', 'transaction']);
  return { ...resource, ...pick(payload, ['receiptId', 'state']), ...payment, ...refundOf(payload) };
}

function refundOf(document: JsonObject): JsonObject {
  const transaction = objectAt(document, 'refund')?.['transaction'];
  return transaction === undefined ? {} : { 'refund.transaction': transaction };
}

/** What is kept together must be of one purchase, and all of it signed. @throws NotGenuine */
export function checkTogether(signed: readonly Signed[], { beside, accepts }: Omit<Kept, 'signed'>): void {
  const known = new Map<string, Json>();
  for (const one of [...beside, ...signed.map(purchaseOf)])
    for (const [name, value] of Object.entries(one)) {
      const other = known.get(name);
      if (other !== undefined && other !== value) throw new NotGenuine(`the file has two values of ${name}`);
      known.set(name, value);
    }
  const statement = signed.find(({ kind }) => kind === 'statement');
  if (statement !== undefined && known.has('refund.transaction') && objectAt(statement.payload, 'refund') === undefined)
    throw new NotGenuine('the file has a refund, and its statement has none');
  const offers = signed
    .filter(({ kind }) => kind === 'offer')
    .map(({ payload }) => canonicalJson(pick(payload, OFFER)));
  if (accepts.some((offer) => !offers.includes(canonicalJson(pick(offer, OFFER)))))
    throw new NotGenuine('the file offers what is not signed');
}

function pick(from: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = from[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
