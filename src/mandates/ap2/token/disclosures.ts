/** Puts the disclosures of an SD-JWT (RFC 9901) back into its claims (ap2 7.6, step 7). */

import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import { Refused } from '../model/reasons.ts';
import { decodeBase64url, readTokenJson } from './jws.ts';
import { sha256 } from './segments.ts';

/** Where in a token a value stands, as far as it matters for what may be withheld there. */
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

/** One walk over one token. Its depth is bounded: each disclosure is, and is put in once. */
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
    // Last, because an altered disclosure leaves its digest hidden too, and explains more.
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
