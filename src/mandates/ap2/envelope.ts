/** The envelope of a mandate (ap2 7.2): how calls carry it, and the presentations in it. */

import { isUtf8 } from 'node:buffer';
import { isObject, type Json, type JsonObject, parseStrictJson } from '../../json/json.ts';
import { Refused } from './reasons.ts';
import { decodeBase64url } from './sd-jwt.ts';

/** Members that only the intent, cart and payment mandates of AP2 v0.1 have (ap2 2.3). */
const FIRST_VERSION: ReadonlySet<string> = new Set([
  'natural_language_description',
  'intent_expiry',
  'merchant_authorization',
  'payment_mandate_contents',
  'user_authorization',
  'ap2.mandates.IntentMandate',
  'ap2.mandates.CartMandate',
  'ap2.mandates.PaymentMandate',
]);

/** Deepest nesting of an envelope; a right one has a single level. */
const MAX_ENVELOPE_DEPTH = 4;
const MEMBERS: ReadonlySet<string> = new Set(['method', 'version', 'payload', 'payment_mandate']);
/** Characters of one presentation (ap2 7.2). */
const MIN_PRESENTATION = 16;
const MAX_PRESENTATION = 24_576;
const PRESENTATION = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*~[A-Za-z0-9_.~-]*$/;

/**
 * How the caller's protocol carried a mandate (ap2 7.1): not at all, once as text, in a form that
 * no mandate can have, or in several members that differ.
 */
export type CarriedMandate =
  | { readonly kind: 'none' }
  /** base64url of the JSON of the envelope, as received. */
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'illegible' }
  | { readonly kind: 'conflicting' };

/** The two presentations of an envelope, not yet read. */
interface Envelope {
  readonly checkout: string;
  readonly payment: string | undefined;
}

/** `_authorization` of MCP and A2A: the envelope itself, or the text of the header (ap2 7.1). */
export function carriedMember(value: Json | undefined): CarriedMandate {
  if (value === undefined) return { kind: 'none' };
  if (typeof value === 'string') return { kind: 'text', value };
  if (!isObject(value)) return { kind: 'illegible' };
  return { kind: 'text', value: Buffer.from(JSON.stringify(value), 'utf8').toString('base64url') };
}

/**
 * Opens the envelope (ap2 7.6, steps 1 to 3). `maxBytes` bounds the text before it is decoded.
 * @throws Refused
 */
export function readEnvelope(carried: CarriedMandate, maxBytes: number): Envelope {
  if (carried.kind === 'none') throw new Refused('mandate_required');
  if (carried.kind !== 'text') throw new Refused('envelope_encoding');
  const text = carried.value;
  if (text === '') throw new Refused('mandate_required');
  if (text.length > maxBytes) throw new Refused('envelope_too_large');
  const bytes = decodeBase64url(text);
  // A header sent twice arrives as "A, B": neither comma nor space is in the alphabet.
  if (bytes === undefined || !isUtf8(bytes)) throw new Refused('envelope_encoding');
  return opened(parsed(bytes));
}

function parsed(bytes: Buffer): Json {
  try {
    return parseStrictJson(bytes, MAX_ENVELOPE_DEPTH);
  } catch {
    throw new Refused('envelope_json');
  }
}

function opened(envelope: Json): Envelope {
  if (!isObject(envelope)) throw new Refused('envelope_schema');
  checkVersion(envelope);
  if (Object.keys(envelope).some((name) => !MEMBERS.has(name))) throw new Refused('envelope_schema');
  const { payload, payment_mandate: payment } = envelope;
  if (!isPresentation(payload)) throw new Refused('envelope_schema');
  if (payment !== undefined && !isPresentation(payment)) throw new Refused('envelope_schema');
  return { checkout: payload, payment };
}

/** Tells other versions apart from mistakes, so that their clients learn the reason. */
function checkVersion(envelope: JsonObject): void {
  const { method, version } = envelope;
  if (hasFirstVersionMember(envelope)) throw new Refused('unsupported_version');
  if (typeof method !== 'string') throw new Refused('envelope_schema');
  if (version !== undefined && typeof version !== 'string') throw new Refused('envelope_schema');
  if (method !== 'ap2' || (version !== undefined && version !== '0.2')) throw new Refused('unsupported_version');
}

/** Whether an envelope, or a document that it carries as an object, is one of AP2 v0.1. */
function hasFirstVersionMember(envelope: JsonObject): boolean {
  return [envelope, envelope['payload'], envelope['payment_mandate']].some(
    (document) => isObject(document) && Object.keys(document).some((name) => FIRST_VERSION.has(name)),
  );
}

function isPresentation(value: Json | undefined): value is string {
  if (typeof value !== 'string' || value.length < MIN_PRESENTATION || value.length > MAX_PRESENTATION) return false;
  return PRESENTATION.test(value);
}
