/**
 * The proof of a buyer (x402 2.3): the only parser of PaymentPayloads, behind every channel, the
 * header values of the HTTP transport, the replay key, and the window of an authorization.
 */

import { createHash } from 'node:crypto';
import { isObject, type Json, type JsonObject, readStrictJson } from '../../../json/json.ts';
import type { PaymentRecord } from '../../ledger/ledger.ts';
import type { EchoedRequirements, Eip3009Authorization, PaymentPayload, ResourceInfo } from './types.ts';

/** The extension that lets a buyer name its payment (contract 4.4). */
export const PAYMENT_IDENTIFIER = 'payment-identifier';
/** The extension that carries the buyer's secret (contract 4.5). */
export const BUYER_TOKEN = 'agent-commerce-buyer';
/** The extension from which facilitators make their catalogues. */
export const BAZAAR = 'bazaar';
/** The part of the echoed form of a tool that is kept. */
const TOOL_ECHO = { info: { input: { type: 'mcp' } } } as const;
/** The form of a text in a proof, with words for its buyer. */
interface Grammar {
  readonly pattern: RegExp;
  readonly words: string;
}
const ADDRESS: Grammar = { pattern: /^0x[0-9a-fA-F]{40}$/, words: 'an address, 0x and 40 hexadecimal digits' };
const BYTES32: Grammar = { pattern: /^0x[0-9a-fA-F]{64}$/, words: '32 bytes, 0x and 64 hexadecimal digits' };
/** Whole bytes, at least one. The header's size bounds the length. */
const BYTES: Grammar = { pattern: /^0x(?:[0-9a-fA-F]{2})+$/, words: '0x and hexadecimal digits, two a byte' };
/** An integer without leading zeros; 78 digits hold 2^256 - 1. */
const INTEGER: Grammar = {
  pattern: /^(?:0|[1-9][0-9]{0,77})$/,
  words: 'a decimal string without leading zeros, below 2^256',
};
/** An integer that may have leading zeros: offers are compared as integers (contract 4.2). */
const AMOUNT: Grammar = { pattern: /^[0-9]{1,78}$/, words: 'a decimal string' };
const TEXT: Grammar = { pattern: /^/, words: 'a string' };
const IDENTIFIER: Grammar = { pattern: /^[A-Za-z0-9_-]{16,128}$/, words: '16 to 128 of A-Z, a-z, 0-9, _ and -' };
const UINT256_LIMIT = 1n << 256n;

/** Tokens of contract 1.3. */
type UnreadableReason = 'invalid_payload' | 'invalid_x402_version' | 'invalid_scheme';

/** A proof as the buyer sent it: well-formed, in canonical spelling, not yet verified. */
export type DecodedProof =
  | {
      readonly kind: 'decoded';
      readonly payload: PaymentPayload;
      /** `info.id` of the payment-identifier extension, when the buyer chose one. */
      readonly paymentIdentifier: string | undefined;
      /** The echoed token. Nothing else of a proof holds it, and only its digest is kept. */
      readonly buyerToken: string | undefined;
    }
  | {
      readonly kind: 'unreadable';
      readonly reason: UnreadableReason;
      /** The fault and its remedy; quotes nothing of the proof. */
      readonly fault?: string;
      /** The echoed token, where so much can be read. */
      readonly buyerToken?: string;
    };

/**
 * Reads a PaymentPayload for scheme `exact` with EIP-3009. It tolerates what the official schema
 * tolerates (@x402/core 2.27): `resource`, `accepted.extra` and `extensions` may be null, which is
 * the same as absent, and unknown members may occur everywhere. Those are dropped here, so nothing
 * behind this file can forward them. It also gives every value its canonical spelling (hex in lower
 * case, integers without leading zeros). Regular expressions run before any BigInt.
 */
function readPaymentPayload(document: Json): DecodedProof {
  if (!isObject(document)) return { kind: 'unreadable', reason: 'invalid_payload', fault: 'it must be a JSON object' };
  const token = echoedToken(document['extensions']);
  const unreadable = (reason: UnreadableReason, fault?: string): DecodedProof => ({
    ...{ kind: 'unreadable', reason },
    ...(fault === undefined ? {} : { fault }),
    ...(token === undefined ? {} : { buyerToken: token }),
  });
  if (document['x402Version'] !== 2) return unreadable('invalid_x402_version');
  try {
    const accepted = members(document, 'accepted', 'the entry of accepts that is paid');
    if (text(accepted, 'accepted.scheme', TEXT) !== 'exact') return unreadable('invalid_scheme');
    return decodedProof(document, accepted, token);
  } catch (thrown) {
    if (thrown instanceof Misfit) return unreadable('invalid_payload', thrown.message);
    throw thrown;
  }
}

/** @throws Misfit */
function decodedProof(document: JsonObject, accepted: JsonObject, token: string | undefined): DecodedProof {
  const requirements = readRequirements(accepted);
  const payload = readExactPayload(members(document, 'payload', 'an object with signature and authorization'));
  const resource = readResource(document);
  const { id, asTool } = readExtensions(document);
  const kept = {
    ...(id === undefined ? {} : { [PAYMENT_IDENTIFIER]: { info: { id } } }),
    ...(asTool ? { [BAZAAR]: TOOL_ECHO } : {}),
  };
  return {
    kind: 'decoded',
    payload: {
      x402Version: 2,
      ...(resource === undefined ? {} : { resource }),
      accepted: requirements,
      payload,
      ...(Object.keys(kept).length === 0 ? {} : { extensions: kept }),
    },
    paymentIdentifier: id,
    buyerToken: token,
  };
}

/** The identity of an authorization: the chain accepts each one at most once. */
interface ReplaySubject {
  readonly chainId: number;
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
}

/**
 * The replay key (contract 4.3): SHA-256 hex over `x402|{chainId}|{asset}|{from}|{nonce}`, all
 * lower case. It depends on the authorization only, not on the spelling of a header or a signature.
 */
export function replayKey({ chainId, asset, from, nonce }: ReplaySubject): string {
  const subject = `x402|${chainId}|${asset.toLowerCase()}|${from.toLowerCase()}|${nonce.toLowerCase()}`;
  return createHash('sha256').update(subject).digest('hex');
}

const CAIP2_EIP155 = /^eip155:([1-9]\d{0,14})$/;

/** The chain id of a CAIP-2 id of namespace eip155; undefined for every other text. */
export function eip155ChainId(network: string): number | undefined {
  const match = CAIP2_EIP155.exec(network);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/**
 * The replay keys that the payment of a proof may have: in the asset that it names, and in those of
 * this configuration, whatever it names.
 */
export function replayKeys(
  { accepted, payload: { authorization } }: PaymentPayload,
  own: readonly Pick<ReplaySubject, 'chainId' | 'asset'>[],
): ReadonlySet<string> {
  const chainId = eip155ChainId(accepted.network);
  const named = chainId === undefined ? [] : [{ chainId, asset: accepted.asset }];
  return new Set([...named, ...own].map(({ chainId, asset }) => replayKey({ ...authorization, chainId, asset })));
}

/** A member of a proof that is not what it must be. */
class Misfit extends Error {
  constructor(path: string, value: Json | undefined, words: string) {
    super(value === undefined ? `${path} is missing: it must be ${words}` : `${path} must be ${words}`);
    this.name = 'Misfit';
  }
}

/** The last name of a path. */
function nameIn(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

/** @throws Misfit */
function members(object: JsonObject, path: string, words: string): JsonObject {
  const value = object[nameIn(path)];
  if (!isObject(value)) throw new Misfit(path, value, words);
  return value;
}

/** @throws Misfit */
function text(object: JsonObject, path: string, { pattern, words }: Grammar): string {
  const value = object[nameIn(path)];
  if (typeof value !== 'string' || !pattern.test(value)) throw new Misfit(path, value, words);
  return value;
}

/** @throws Misfit */
function uint256(object: JsonObject, path: string): string {
  const value = text(object, path, INTEGER);
  if (BigInt(value) >= UINT256_LIMIT) throw new Misfit(path, value, INTEGER.words);
  return value;
}

function readRequirements(accepted: JsonObject): EchoedRequirements {
  const { maxTimeoutSeconds } = accepted;
  if (typeof maxTimeoutSeconds !== 'number')
    throw new Misfit('accepted.maxTimeoutSeconds', maxTimeoutSeconds, 'a number, as in accepts');
  const extra = accepted['extra'] ?? undefined;
  if (extra !== undefined && !isObject(extra)) throw new Misfit('accepted.extra', extra, 'an object, as in accepts');
  return {
    scheme: 'exact',
    network: text(accepted, 'accepted.network', TEXT),
    amount: BigInt(text(accepted, 'accepted.amount', AMOUNT)).toString(),
    asset: text(accepted, 'accepted.asset', ADDRESS).toLowerCase(),
    payTo: text(accepted, 'accepted.payTo', ADDRESS).toLowerCase(),
    maxTimeoutSeconds,
    extra,
  };
}

function readExactPayload(payload: JsonObject): {
  readonly signature: string;
  readonly authorization: Eip3009Authorization;
} {
  const at = 'payload.authorization';
  const authorization = members(payload, at, 'the authorization that is signed');
  return {
    signature: text(payload, 'payload.signature', BYTES).toLowerCase(),
    authorization: {
      from: text(authorization, `${at}.from`, ADDRESS).toLowerCase(),
      to: text(authorization, `${at}.to`, ADDRESS).toLowerCase(),
      value: uint256(authorization, `${at}.value`),
      validAfter: uint256(authorization, `${at}.validAfter`),
      validBefore: uint256(authorization, `${at}.validBefore`),
      nonce: text(authorization, `${at}.nonce`, BYTES32).toLowerCase(),
    },
  };
}

/** Only `url` is kept: the rest of the echo repeats the offer. */
function readResource(document: JsonObject): ResourceInfo | undefined {
  if ((document['resource'] ?? undefined) === undefined) return undefined;
  const resource = members(document, 'resource', 'that of the challenge, or left out');
  return { url: text(resource, 'resource.url', TEXT) };
}

/** The parts of echoed extensions that are read. `asTool`: the offer described a tool. */
interface EchoedExtensions {
  readonly id: string | undefined;
  readonly asTool: boolean;
}

/**
 * Clients echo every extension of the offer, and may add their own. Only the payment identifier
 * must be well-formed, because a misspelled name must not become no name.
 */
function readExtensions(document: JsonObject): EchoedExtensions {
  if ((document['extensions'] ?? undefined) === undefined) return { id: undefined, asTool: false };
  const extensions = members(document, 'extensions', 'an object, or left out');
  const echoed = { id: undefined, asTool: isOfTool(extensions[BAZAAR]) };
  if ((extensions[PAYMENT_IDENTIFIER] ?? undefined) === undefined) return echoed;
  const at = `extensions.${PAYMENT_IDENTIFIER}`;
  const info = members(members(extensions, at, 'an object, or left out'), `${at}.info`, 'an object');
  return info['id'] === undefined ? echoed : { ...echoed, id: text(info, `${at}.info.id`, IDENTIFIER) };
}

/** Whether an echoed extension is the form of a tool. */
export function isOfTool(echoed: Json | undefined): boolean {
  const input = isObject(echoed) && isObject(echoed['info']) ? echoed['info']['input'] : undefined;
  return isObject(input) && input['type'] === TOOL_ECHO.info.input.type;
}

/** Anything but a text is no token and no error: a payment must not fail for it. */
function echoedToken(extensions: Json | undefined): string | undefined {
  const echoed = isObject(extensions) ? extensions[BUYER_TOKEN] : undefined;
  const info = isObject(echoed) ? echoed['info'] : undefined;
  const token = isObject(info) ? info['token'] : undefined;
  return typeof token === 'string' ? token : undefined;
}

const ALPHABET = /^[A-Za-z0-9+/]+={0,2}$/;

/** A document as a header value. */
export function encodeHeader(document: unknown): string {
  return encodeHeaderText(JSON.stringify(document));
}

/** A document that already is JSON text as a header value. */
export function encodeHeaderText(json: string): string {
  return Buffer.from(json, 'utf8').toString('base64');
}

/**
 * The bytes of a header value; undefined when it is not base64 in its canonical spelling (padding
 * may be left out). Node's decoder skips what it does not know, so the bytes are encoded again and
 * compared.
 */
export function decodeHeader(value: string): Uint8Array | undefined {
  if (!ALPHABET.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64');
  const padded = bytes.toString('base64');
  return value === padded || value === padded.replace(/=+$/, '') ? bytes : undefined;
}

/** Longest PAYMENT-SIGNATURE value that is read, bytes (contract 3). */
export const MAX_PROOF_BYTES = 8_192;

/** Reads a PAYMENT-SIGNATURE: size, strict base64, strict JSON, schema (contract 4.2, step 1). */
export function decodeProof(header: string): DecodedProof {
  const unreadable = (fault: string): DecodedProof => ({ kind: 'unreadable', reason: 'invalid_payload', fault });
  // Characters outside base64 are refused below, so characters are bytes here.
  if (header.length > MAX_PROOF_BYTES) return unreadable(`it must have at most ${MAX_PROOF_BYTES} bytes`);
  const bytes = decodeHeader(header);
  if (bytes === undefined)
    return unreadable(
      header.trimStart().startsWith('{')
        ? 'it must be the base64 of its JSON, not the JSON itself'
        : 'it must be standard base64, with A-Z, a-z, 0-9, + and /',
    );
  const document = readStrictJson(bytes);
  if (document === undefined) return unreadable('its base64 must hold one JSON object, without a name twice');
  return readPaymentPayload(document);
}

/** A payload that MCP or A2A carries as an object, as the header that `decodeProof` reads. */
export function encodeProof(payload: Json | PaymentPayload): string {
  return encodeHeader(payload);
}

/** How far `validAfter` may lie in the future: clocks differ, and the chain's lags. */
export const VALID_AFTER_SKEW_SECONDS = 5;
/** Least time to `validBefore` when a proof comes: it has to reach a block. */
export const VALID_BEFORE_MARGIN_SECONDS = 6;
/** Least time to settle when the backend answers before the payment. */
const SETTLEMENT_SECONDS = 70;
/** How much longer than offered an authorization may live: this bounds the use of a stolen one. */
export const VALID_BEFORE_EXCESS_SECONDS = 600;

export type WindowReason =
  | 'invalid_exact_evm_payload_authorization_valid_after'
  | 'invalid_exact_evm_payload_authorization_valid_before';

/** Least time left of a window, seconds, where the backend answers first, within `timeoutMs`. */
export function leastSecondsToPay(timeoutMs: number): number {
  return Math.ceil(timeoutMs / 1_000) + SETTLEMENT_SECONDS;
}

/** A window that is refused: the reason, and the bound in words. */
export interface WindowFault {
  readonly reason: WindowReason;
  readonly fault: string;
}

/** The fault of an authorization at this time (contract 4.2, step 3), or undefined. */
export function invalidWindow(
  { validAfter, validBefore }: Pick<Eip3009Authorization, 'validAfter' | 'validBefore'>,
  maxTimeoutSeconds: number,
  nowMs: number,
  leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS,
): WindowFault | undefined {
  const now = Math.floor(nowMs / 1_000);
  const begins = now + VALID_AFTER_SKEW_SECONDS;
  if (BigInt(validAfter) > BigInt(begins))
    return {
      reason: 'invalid_exact_evm_payload_authorization_valid_after',
      fault: `validAfter is still to come: it must be at most ${begins}, ${VALID_AFTER_SKEW_SECONDS} s from now`,
    };
  const ends = BigInt(validBefore);
  const mostSeconds = maxTimeoutSeconds + VALID_BEFORE_EXCESS_SECONDS;
  const tooSoon = ends < BigInt(now + leastSeconds);
  if (!tooSoon && ends <= BigInt(now + mostSeconds)) return undefined;
  const how = ends <= BigInt(now) ? 'has passed' : tooSoon ? 'is too near' : 'is too far away';
  return {
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
    fault: `validBefore ${how}: it must be ${now + leastSeconds} to ${now + mostSeconds}, ${leastSeconds} s to ${mostSeconds} s from now`,
  };
}

/** The first moment that `tooLate` refuses, Unix milliseconds. */
export function tooLateFrom(validBefore: number, leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS): number {
  return (validBefore - leastSeconds + 1) * 1_000;
}

/**
 * Judges the window again, on the clock that all processes share. Another process may have answered
 * a copy of this proof with a challenge, so a late attempt must not begin after its end.
 * `leastSeconds`: the bound that the check of that copy used.
 */
export function tooLate(
  { reservedAt, validBefore }: Pick<PaymentRecord, 'reservedAt' | 'validBefore'>,
  leastSeconds: number = VALID_BEFORE_MARGIN_SECONDS,
): WindowReason | undefined {
  return reservedAt < tooLateFrom(validBefore, leastSeconds)
    ? undefined
    : 'invalid_exact_evm_payload_authorization_valid_before';
}
