/**
 * SD-JWT (RFC 9901) and the compact JWS in it (RFC 7515): splits a presentation into its segments,
 * opens their tokens, puts disclosures back into claims, and signs the gateway's own tokens.
 */

import { hash } from 'node:crypto';
import { compactSigner, type SigningKey } from '../../crypto/signing-key.ts';
import { isObject, type Json, JsonError, type JsonObject, parseStrictJson } from '../../json/json.ts';
import { type MandateReference, Refused } from './reasons.ts';

/** Of a presentation: a root, two sub-agents and the hop that closes it (ap2 7.6, step 4). */
export const MAX_SEGMENTS = 4;
/** Of one segment. */
export const MAX_DISCLOSURES = 64;
/** Characters of one segment. */
export const MAX_SEGMENT = 16_384;

/** A token and its disclosures as they were sent. */
export interface SegmentText {
  /** The whole text, with the last `~` that joining drops; `sd_hash` covers it. */
  readonly text: string;
  readonly jwt: string;
  /** base64url each, none empty. */
  readonly disclosures: readonly string[];
}

/**
 * Splits a presentation at `~~` and puts back the `~` that every segment but the last lost there
 * (ap2 3). A segment without disclosures is `jwt~`, so `jwt~~jwt~` is a chain of two.
 * @throws Refused
 */
export function splitPresentation(presentation: string): readonly SegmentText[] {
  const pieces = presentation.split('~~', MAX_SEGMENTS + 1);
  if (pieces.length > MAX_SEGMENTS) throw new Refused('mandate_malformed');
  return pieces.map((piece, at) => segmentOf(at === pieces.length - 1 ? piece : `${piece}~`));
}

/** The leaf of a presentation, right or wrong, as receipts refer to it; undefined without one. */
export function referenceOf(presentation: string): MandateReference | undefined {
  const leaf = presentation.slice(presentation.lastIndexOf('~~') + 1).replace(/^~/, '');
  const jwt = leaf.slice(0, Math.max(0, leaf.indexOf('~')));
  return jwt.split('.').length === 3 && leaf.endsWith('~') ? leafReference(jwt, sha256(leaf)) : undefined;
}

/** `sdHash`: of the leaf with its disclosures. */
export function leafReference(jwt: string, sdHash: string): MandateReference {
  return { reference: sha256(jwt), referenceSdHash: sdHash };
}

/** base64url of SHA-256 over the ASCII of a text: every digest of a presentation is one. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url');
}

function segmentOf(text: string): SegmentText {
  const [jwt = '', ...rest] = text.split('~', MAX_DISCLOSURES + 3);
  const disclosures = rest.slice(0, -1);
  if (text.length > MAX_SEGMENT || disclosures.length > MAX_DISCLOSURES) throw new Refused('mandate_malformed');
  // A segment ends in `~`. No disclosure is empty: that would be a `~~`, where segments are split.
  if (rest.at(-1) !== '') throw new Refused('mandate_malformed');
  return { text, jwt, disclosures };
}

/** Deepest nesting of the parts of a token, and of one disclosure (ap2 7.6, step 5). */
export const MAX_TOKEN_DEPTH = 16;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const SPELLING = /^[A-Za-z0-9_-]*$/;

/** Where in a chain a token stands; its `typ` must agree (ap2 3). */
type Position = 'root' | 'handed_on' | 'closing';

/** Roots as used in practice, and hops in the spelling of the SDK and of the draft. */
const TYPES: Readonly<Record<Position, ReadonlySet<unknown>>> = {
  root: new Set(['dc+sd-jwt', 'vc+sd-jwt', 'sd+jwt', 'example+sd-jwt']),
  handed_on: new Set(['kb+sd-jwt+kb', 'kb-sd-jwt+kb']),
  closing: new Set(['kb+sd-jwt', 'kb-sd-jwt']),
};

/** A compact JWS taken apart. Nothing of it is verified yet. */
export interface Token {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly signature: Buffer;
  /** `header.payload`: what was signed, and what the token is known by. */
  readonly signingInput: string;
}

/** `mandate_malformed`: no token; `claims_invalid`: a token with a number that is not exact. */
type TokenReading =
  | { readonly ok: true; readonly token: Token }
  | { readonly ok: false; readonly reason: 'mandate_malformed' | 'claims_invalid' };

/** `inexact`: JSON with a number that a double cannot hold. */
type JsonReading = { readonly kind: 'read'; readonly value: Json } | { readonly kind: 'inexact' | 'illegible' };

/**
 * Opens the token of a segment (ap2 7.6, step 5). Keys in the header (`jwk`, `jku`, `x5u`) are
 * ignored.
 * @throws Refused
 */
export function openToken(jwt: string, position: Position, algorithms: ReadonlySet<unknown>): Token {
  const reading = readToken(jwt);
  if (!reading.ok) throw new Refused(reading.reason);
  const { alg, typ, crit, b64 } = reading.token.header;
  // RFC 7515, section 4.1.11: unknown extensions are refused. None is known here, and `b64` would
  // change what was signed.
  if (crit !== undefined || b64 !== undefined) throw new Refused('unsupported_algorithm');
  if (!algorithms.has(alg)) throw new Refused('unsupported_algorithm');
  if (!TYPES[position].has(typ)) throw new Refused('unexpected_typ');
  return reading.token;
}

/** Takes a compact JWS apart: three parts of base64url, the first two strict JSON objects. */
export function readToken(jwt: string): TokenReading {
  const parts = jwt.split('.', 4);
  const [head = '', payload = ''] = parts;
  const [headBytes, payloadBytes, signature] = parts.map(decodeBase64url);
  if (parts.length !== 3 || signature === undefined) return { ok: false, reason: 'mandate_malformed' };
  const header = readTokenJson(headBytes);
  const claims = readTokenJson(payloadBytes);
  if (header.kind === 'inexact' || claims.kind === 'inexact') return { ok: false, reason: 'claims_invalid' };
  if (header.kind !== 'read' || !isObject(header.value) || claims.kind !== 'read' || !isObject(claims.value))
    return { ok: false, reason: 'mandate_malformed' };
  return {
    ok: true,
    token: { header: header.value, claims: claims.value, signature, signingInput: `${head}.${payload}` },
  };
}

/** Strict JSON of a token or of a disclosure. */
function readTokenJson(bytes: Uint8Array | undefined): JsonReading {
  if (bytes === undefined) return { kind: 'illegible' };
  try {
    return { kind: 'read', value: parseStrictJson(bytes, MAX_TOKEN_DEPTH) };
  } catch (error) {
    return { kind: error instanceof JsonError && error.reason === 'number_out_of_range' ? 'inexact' : 'illegible' };
  }
}

/**
 * Reads the one spelling that base64url has for some bytes (RFC 4648, section 5, without padding).
 * `Buffer.from` also accepts padding, line breaks, the other alphabet, odd lengths and nonzero
 * spare bits, so that one token would have many names (ap2 7.6, step 2). Undefined for those.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const rest = text.length % 4;
  if (rest === 1 || !SPELLING.test(text)) return undefined;
  if (rest !== 0) {
    const unused = rest === 2 ? 0b1111 : 0b11;
    if ((ALPHABET.indexOf(text.charAt(text.length - 1)) & unused) !== 0) return undefined;
  }
  return Buffer.from(text, 'base64url');
}

/** Signs claims as compact JWS of one `typ`. */
export function createCompactSigner(typ: string, key: SigningKey): (claims: JsonObject) => string {
  const { alg, kid } = key.publicJwk;
  const sign = compactSigner(key, { alg, typ, kid });
  return (claims) => sign(JSON.stringify(claims));
}

/** The place of a value in a token, as far as it decides which values may be withheld. */
type Place =
  | 'token'
  | 'mandates'
  | 'mandate'
  | 'constraints'
  | 'constraint'
  | 'requirements'
  | 'requirement'
  | 'choices'
  | 'elsewhere';

/** `delegate_payload[].constraints[].allowed` and `.items[].acceptable_items`, a step at a time. */
const MEMBERS: ReadonlyMap<string, Place> = new Map([
  ['token.delegate_payload', 'mandates'],
  ['mandate.constraints', 'constraints'],
  ['constraint.allowed', 'choices'],
  ['constraint.items', 'requirements'],
  ['requirement.acceptable_items', 'choices'],
]);
const ELEMENTS: ReadonlyMap<Place, Place> = new Map([
  ['mandates', 'mandate'],
  ['constraints', 'constraint'],
  ['requirements', 'requirement'],
]);

/**
 * Names of SD-JWT itself, and names that reach a prototype: the JSON parser has not checked a
 * disclosed name.
 */
const RESERVED: ReadonlySet<string> = new Set(['_sd', '...', '_sd_alg', '__proto__', 'constructor', 'prototype']);
/** Claims of a token that are never disclosed (RFC 7519, section 4.1; SD-JWT VC; ap2 6). */
const REGISTERED: ReadonlySet<string> = new Set([
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'cnf', 'vct', 'status'],
  ...['nonce', 'sd_hash', 'issuer_jwt_hash', 'delegate_payload'],
]);

/** A disclosure (RFC 9901, section 4.2): of a named member, or of an element of an array. */
interface Disclosure {
  readonly name: string | undefined;
  readonly value: Json;
}

/**
 * The claims of a token with its disclosures put in and all marks of SD-JWT taken out. Every
 * disclosure is used exactly once, and only elements that may be withheld stay hidden. A token
 * without `delegate_payload` is a credential: it may withhold anything, because it states nothing
 * about a purchase.
 * @throws Refused
 */
export function resolveDisclosures(claims: JsonObject, disclosures: readonly string[]): JsonObject {
  const algorithm = claims['_sd_alg'];
  if (algorithm !== undefined && algorithm !== 'sha-256') throw new Refused('unsupported_algorithm');
  return new Resolution(disclosures, !Object.hasOwn(claims, 'delegate_payload')).of(claims);
}

/** One walk over one token, bounded in depth: a disclosure has a bound and is put in once. */
class Resolution {
  readonly #disclosures = new Map<string, Disclosure>();
  readonly #digests = new Set<string>();
  readonly #credential: boolean;
  #unused: number;
  #withheld = false;

  constructor(disclosures: readonly string[], credential: boolean) {
    this.#credential = credential;
    // A disclosure that was sent twice is used once, so one is left over.
    this.#unused = disclosures.length;
    for (const text of disclosures) this.#disclosures.set(sha256(text), readDisclosure(text));
  }

  of(claims: JsonObject): JsonObject {
    const resolved = this.#object(claims, 'token');
    if (this.#unused > 0) throw new Refused('disclosure_invalid');
    // Checked last: an altered disclosure leaves its digest hidden too, and explains more.
    if (this.#withheld) throw new Refused('disclosure_missing');
    return resolved;
  }

  #value(value: Json, place: Place): Json {
    if (Array.isArray(value)) return this.#array(value, place);
    return isObject(value) ? this.#object(value, place) : value;
  }

  #object(object: JsonObject, place: Place): JsonObject {
    const resolved: Record<string, Json> = {};
    for (const [name, value] of Object.entries(object)) {
      if (name === '...' || (name === '_sd_alg' && place !== 'token')) throw new Refused('disclosure_invalid');
      if (name !== '_sd' && name !== '_sd_alg') resolved[name] = this.#value(value, memberPlace(place, name));
    }
    for (const digest of digestsOf(object['_sd'])) this.#addMember(resolved, digest, place);
    return resolved;
  }

  #addMember(resolved: Record<string, Json>, digest: string, place: Place): void {
    const disclosure = this.#take(digest);
    if (disclosure === undefined) {
      if (!this.#credential) this.#withheld = true;
      return;
    }
    const { name } = disclosure;
    if (name === undefined || Object.hasOwn(resolved, name)) throw new Refused('disclosure_invalid');
    if (place === 'token' && REGISTERED.has(name)) throw new Refused('disclosure_invalid');
    resolved[name] = this.#value(disclosure.value, memberPlace(place, name));
  }

  #array(array: readonly Json[], place: Place): readonly Json[] {
    const resolved: Json[] = [];
    for (const element of array) {
      const digest = elementDigest(element);
      if (digest === undefined) resolved.push(this.#value(element, elementPlace(place)));
      else this.#addElement(resolved, digest, place);
    }
    return resolved;
  }

  #addElement(resolved: Json[], digest: string, place: Place): void {
    const disclosure = this.#take(digest);
    if (disclosure === undefined) {
      if (!this.#credential && !mayWithhold(place)) this.#withheld = true;
      return;
    }
    if (disclosure.name !== undefined) throw new Refused('disclosure_invalid');
    resolved.push(this.#value(disclosure.value, elementPlace(place)));
  }

  /** The disclosure of a digest; a digest occurs once in a token, disclosed or not. */
  #take(digest: string): Disclosure | undefined {
    if (this.#digests.has(digest)) throw new Refused('disclosure_invalid');
    this.#digests.add(digest);
    const disclosure = this.#disclosures.get(digest);
    if (disclosure !== undefined) this.#unused -= 1;
    return disclosure;
  }
}

function memberPlace(object: Place, name: string): Place {
  return MEMBERS.get(`${object}.${name}`) ?? 'elsewhere';
}

function elementPlace(array: Place): Place {
  return ELEMENTS.get(array) ?? 'elsewhere';
}

/**
 * Whether elements of an array may be withheld: sibling mandates, and choices that this merchant
 * need not know. Anywhere else in a mandate a hidden digest could be a limit (ap2 7.3).
 */
function mayWithhold(array: Place): boolean {
  return array === 'mandates' || array === 'choices';
}

function readDisclosure(text: string): Disclosure {
  const read = readTokenJson(decodeBase64url(text));
  if (read.kind === 'inexact') throw new Refused('claims_invalid');
  if (read.kind !== 'read' || !Array.isArray(read.value)) throw new Refused('disclosure_invalid');
  const [salt, second, third, ...more]: readonly Json[] = read.value;
  if (typeof salt !== 'string' || second === undefined || more.length > 0) throw new Refused('disclosure_invalid');
  if (third === undefined) return { name: undefined, value: second };
  if (typeof second !== 'string' || RESERVED.has(second)) throw new Refused('disclosure_invalid');
  return { name: second, value: third };
}

function digestsOf(value: Json | undefined): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || !value.every((digest: Json) => typeof digest === 'string'))
    throw new Refused('disclosure_invalid');
  return value;
}

/** The digest that stands for an element of an array: an object with `...` as its only member. */
function elementDigest(element: Json): string | undefined {
  if (!isObject(element) || !Object.hasOwn(element, '...')) return undefined;
  const digest = element['...'];
  if (typeof digest !== 'string' || Object.keys(element).length !== 1) throw new Refused('disclosure_invalid');
  return digest;
}
