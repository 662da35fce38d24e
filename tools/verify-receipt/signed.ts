/** Verifies what a gateway signed for a buyer: receipts and offers of x402, and statements. */

import { hash, type KeyObject, verify } from 'node:crypto';
import { canonicalJson, isObject, type JsonObject } from '../../src/json/json.ts';
import { keysOfDidDocument } from '../../src/mandates/ap2/did.ts';
import { type KeysById, keysOfJwks } from '../../src/mandates/ap2/keys.ts';
import { decodeBase64url, readToken } from '../../src/mandates/ap2/sd-jwt.ts';
import { STATEMENT_TYPE } from '../../src/payments/delivery/purchase-signer.ts';

/** What signed text is: it follows from its header and its members. */
type SignedKind = 'receipt' | 'offer' | 'statement';

/** A compact JWS whose form is right. `verified`: the signature is that of a given key. */
export interface Signed {
  readonly kind: SignedKind;
  readonly payload: JsonObject;
  /** The DID URL of the key. */
  readonly kid: string;
  readonly verified: boolean;
}

/** The text is not what it claims to be; the message says what is wrong. */
export class NotGenuine extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotGenuine';
  }
}

/** Finds the key of a DID URL; undefined: it is not among the given ones. */
export type FindKey = (did: string, fragment: string) => KeyObject | undefined;

const KID = /^(did:web:[A-Za-z0-9.%-]+)#([A-Za-z0-9_-]{43})$/;
const SIGNATURE_BYTES = 64;

/** The keys of a DID document, which is about the one host that it names. @throws Error */
export function keysOfDid(document: JsonObject): FindKey {
  const did = document['id'];
  if (typeof did !== 'string') throw new Error('it is no DID document, it names no id');
  const keys = keysOfDidDocument(document, did);
  return (asked, fragment) => (asked === did ? es256Key(keys, `#${fragment}`) : undefined);
}

/** The keys of a key set; where the file came from tells whose they are. @throws Error */
export function keysOfSet(document: JsonObject): FindKey {
  if (!Array.isArray(document['keys'])) throw new Error('it is no key set, it has no list of keys');
  const keys = keysOfJwks(document);
  return (_did, fragment) => es256Key(keys, fragment);
}

function es256Key(keys: KeysById, id: string): KeyObject | undefined {
  const found = keys.get(id);
  return found?.alg === 'ES256' ? found.key : undefined;
}

/**
 * Reads a compact JWS and verifies it where keys are given.
 * @throws NotGenuine
 */
export function readSigned(text: string, findKey: FindKey | undefined): Signed {
  const reading = readToken(text);
  if (!reading.ok) throw new NotGenuine('it is no compact JWS');
  const { header, claims: payload, signature, signingInput } = reading.token;
  const { alg, kid, typ, ...others } = header;
  if (alg !== 'ES256') throw new NotGenuine('its algorithm is not ES256');
  if (Object.keys(others).length > 0) throw new NotGenuine(`its header has ${Object.keys(others).join(', ')}`);
  const [, did = '', fragment = ''] = typeof kid === 'string' ? (KID.exec(kid) ?? []) : [];
  if (did === '') throw new NotGenuine('its key is not named as did:web:HOST#THUMBPRINT');
  const kind = kindOf(typ, payload);
  checkForm(kind, payload);
  const signed = decodeBase64url(signingInput.split('.')[1] ?? '')?.toString('utf8');
  if (signed !== canonicalJson(payload)) throw new NotGenuine('its payload is not in the canonical form (RFC 8785)');
  const url = String(payload['resourceUrl']);
  if (`did:web:${encodeURIComponent(new URL(url).host)}` !== did)
    throw new NotGenuine(`the key is of ${did}, and the resource of another host: ${url}`);
  const named = { kind, payload, kid: String(kid) };
  if (findKey === undefined) return { ...named, verified: false };
  const key = findKey(did, fragment);
  if (key === undefined) throw new NotGenuine(`its key ${String(kid)} is not in the file of keys`);
  const good =
    signature.byteLength === SIGNATURE_BYTES &&
    verify('sha256', Buffer.from(signingInput), { key, dsaEncoding: 'ieee-p1363' }, signature);
  if (!good) throw new NotGenuine('its signature is not that of its key');
  return { ...named, verified: true };
}

/** Whether bytes are the answer that a statement is about. @throws NotGenuine when they are not */
export function checkAnswer({ payload }: Signed, bytes: Uint8Array): void {
  const { answer } = payload;
  if (!isObject(answer)) throw new NotGenuine('it states no delivered answer');
  if (answer['bytes'] !== bytes.byteLength)
    throw new NotGenuine(`it states an answer of ${String(answer['bytes'])} bytes, and these are ${bytes.byteLength}`);
  if (answer['sha256'] !== hash('sha256', bytes, 'hex'))
    throw new NotGenuine('it states an answer with another SHA-256');
}

function kindOf(typ: unknown, payload: JsonObject): SignedKind {
  if (typ === STATEMENT_TYPE) return 'statement';
  if (typ !== undefined) throw new NotGenuine('its type is none of a gateway');
  return 'payer' in payload ? 'receipt' : 'offer';
}

type Check = (value: unknown) => boolean;
const text: Check = (value) => typeof value === 'string' && value !== '';
const one: Check = (value) => value === 1;
const whole: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const digest: Check = (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const url: Check = (value) => typeof value === 'string' && URL.canParse(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const members =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value as JsonObject) &&
    Object.keys(value as JsonObject).every((name) => name in checks) &&
    Object.entries(checks).every(([name, check]) => check((value as JsonObject)[name]));

const FORMS: Readonly<Record<SignedKind, Check>> = {
  receipt: members({
    ...{ version: one, network: text, resourceUrl: url, payer: text, issuedAt: whole },
    transaction: optional(text),
  }),
  offer: members({
    ...{ version: one, resourceUrl: url, scheme: text, network: text, asset: text, payTo: text, amount: text },
    validUntil: optional(whole),
  }),
  statement: members({
    ...{ version: one, receiptId: text, resourceUrl: url, state: text, issuedAt: whole },
    ...{ deliveredAt: optional(whole), input: optional(digest) },
    answer: optional(members({ sha256: digest, bytes: whole, status: whole })),
    payment: members({
      ...{ payId: digest, network: text, asset: text, amount: text, payer: text, payTo: text },
      transaction: optional(text),
    }),
    refund: optional(members({ transaction: text })),
  }),
};

function checkForm(kind: SignedKind, payload: JsonObject): void {
  if (!FORMS[kind](payload))
    throw new NotGenuine(`its payload is not that of ${kind === 'offer' ? 'an' : 'a'} ${kind}`);
}
