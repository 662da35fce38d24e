/** Finds what is signed in the documents that a buyer has kept. */

import { canonicalJson, isObject, type Json, type JsonObject, parseStrictJson } from '../../src/json/json.ts';
import { NotGenuine, type Signed } from './signed.ts';

/** Signed texts, and the document that they were found in; a text alone has none. */
export interface Kept {
  readonly signed: readonly string[];
  readonly document?: JsonObject;
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
  if (COMPACT.test(text)) return { signed: [text] };
  const document = jsonOf(text) ?? jsonOf(Buffer.from(text, 'base64').toString('utf8'));
  if (!isObject(document)) throw new NotGenuine('the file has no header, JSON or JWS of a gateway');
  const payment = objectAt(document, 'payment');
  const signed = [...signedIn(document), ...(payment === undefined ? [] : signedIn(payment))];
  const { statement } = document;
  if (typeof statement === 'string') signed.push(statement);
  if (signed.length === 0) throw new NotGenuine('nothing in the file is signed');
  return { signed, document };
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

/** Members that documents of one purchase have alike, and that something signs. */
const PURCHASE = ['receiptId', 'resourceId', 'state', 'network', 'payer', 'transaction', 'refund.transaction'];
const SIGNED_ALIKE: ReadonlySet<string> = new Set([...PURCHASE, 'payId', 'asset', 'payTo']);
const OFFER = ['scheme', 'network', 'asset', 'payTo', 'amount'];
const INVOKE = /\/api\/resources\/([^/]+)\/invoke$/;
const OFFERED = new RegExp(`^accepts\\.\\d+\\.(?:${OFFER.join('|')})$`);
/** The signed texts themselves, and what never differs beside them. */
const SIGNED_TEXT =
  /^(?:payment\.)?(?:statement|(?:extensions\.offer-receipt\.info\.(?:receipt|offers\.\d+)\.)?(?:format|signature))$/;
const CONSTANTS: Readonly<Record<string, Json>> = { 'schema.type': 'object', 'info.offers.0.acceptIndex': 0 };
const EXTENSION_MEMBER = /^(?:payment\.)?extensions\.offer-receipt\./;

/** What signed texts say of one purchase. @throws NotGenuine where they are of several */
function signedValues(signed: readonly Signed[]): Map<string, Json> {
  const known = new Map<string, Json>();
  for (const { kind, payload } of signed) {
    const [, resourceId] = INVOKE.exec(String(payload['resourceUrl'])) ?? [];
    const { payment, refund, ...plain } = payload;
    const refunded = isObject(refund) ? { 'refund.transaction': refund['transaction'] ?? '' } : {};
    const said = {
      ...pick(plain, ['resourceUrl', 'receiptId', 'state', 'network', 'payer', 'transaction', 'deliveredAt']),
      ...(resourceId === undefined ? {} : { resourceId }),
      ...(kind === 'statement' && isObject(payment) ? payment : {}),
      ...refunded,
    };
    for (const [name, value] of Object.entries(said)) note(known, name, value);
  }
  return known;
}

function note(known: Map<string, Json>, name: string, value: Json): void {
  const other = known.get(name);
  if (other !== undefined && other !== value) throw new NotGenuine(`the file has two values of ${name}`);
  known.set(name, value);
}

/**
 * What is kept together must be of one purchase, and say nothing else than what is signed.
 * @returns the members that nothing signs
 * @throws NotGenuine
 */
export function checkTogether(signed: readonly Signed[], { document }: Pick<Kept, 'document'>): readonly string[] {
  const known = signedValues(signed);
  if (document === undefined) return [];
  const statement = signed.find(({ kind }) => kind === 'statement');
  const isPaid = signed.some(({ kind }) => kind !== 'offer');
  const offers = signed.filter(({ kind }) => kind === 'offer').map(({ payload }) => termsOf(payload));
  const { accepts } = document;
  const offered = Array.isArray(accepts) ? accepts.map((one) => (isObject(one) ? termsOf(one) : '')) : [];
  if ((offers.length > 0 && accepts !== undefined) || offered.length > 0)
    if (offers.length !== offered.length || offered.some((offer, at) => offer !== offers[at]))
      throw new NotGenuine('the file offers something else than what is signed');
  const said = new Map<string, Json>();
  return leavesOf(document, '').flatMap(([path, value]) => {
    const name = path.replace(/^payment\./, '');
    const inExtension = path.replace(EXTENSION_MEMBER, '');
    if (SIGNED_TEXT.test(path) || OFFERED.test(path)) return [];
    if (inExtension !== path && CONSTANTS[inExtension] === value) return [];
    const own = known.get(name);
    const differs = (): never => {
      throw new NotGenuine(`the file has ${path} ${String(value)}, and what is signed says otherwise`);
    };
    if (SIGNED_ALIKE.has(name)) {
      if (own === undefined && value !== '') note(said, name, value);
      if (own !== undefined && own !== value) differs();
      if (name === 'refund.transaction' && own === undefined && statement !== undefined) differs();
      return own === undefined && value !== '' ? [path] : [];
    }
    switch (name) {
      case 'deliveredAt':
        if (statement === undefined) return [path];
        return Math.floor(Date.parse(String(value)) / 1_000) === own ? [] : differs();
      case 'success':
      case 'status':
      case 'errorReason':
        // A signed receipt or statement says that the money has moved.
        if (!isPaid) return [path];
        return (name === 'success' && value === true) || (name === 'status' && value === 'settled') ? [] : differs();
      case 'refund.status':
        return known.get('state') === undefined ? [path] : known.get('state') === value ? [] : differs();
      case 'amount':
        // It is in display units, and only the base units are signed: the digits must be theirs.
        if (own !== undefined && digitsOf(value) !== digitsOf(own)) differs();
        return [path];
      case 'resource.url': {
        const url = known.get('resourceUrl');
        if (url === value) return [];
        // The address of a sale in place is none that is signed.
        return INVOKE.test(String(value)) || hostOf(value) !== hostOf(url) ? differs() : [path];
      }
      default:
        return [path];
    }
  });
}

function termsOf(offer: JsonObject): string {
  return canonicalJson(pick(offer, OFFER));
}

/** Every value that has no members, with the names that lead to it. */
function leavesOf(value: Json, path: string): readonly (readonly [string, Json])[] {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return [[path, value]];
  return Object.entries(value).flatMap(([name, one]) => leavesOf(one, path === '' ? name : `${path}.${name}`));
}

function digitsOf(amount: Json): string {
  return String(amount)
    .replace('.', '')
    .replace(/^0+|0+$/g, '');
}

function hostOf(url: Json | undefined): string | undefined {
  return URL.parse(String(url))?.host;
}

function pick(from: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = from[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
