/** Issuers named by `did:key`, whose name is their key, and the Multikey texts in DID documents. */

import { ECDH } from 'node:crypto';
import type { JsonObject } from '../../../json/types.ts';
import type { KeysById } from './issuer.ts';
import { readPublicKey } from './keys.ts';

const PREFIX = 'did:key:';
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** Longest text that is read, characters: the 35 bytes of a compressed key take 48. */
const MAX_LENGTH = 64;

interface Kind {
  /** The code of multicodec as a varint. */
  readonly prefix: string;
  jwk(bytes: Buffer): JsonObject;
}

const KINDS: readonly Kind[] = [
  { prefix: '8024', jwk: (bytes) => ({ kty: 'EC', crv: 'P-256', ...point(bytes, 'prime256v1') }) },
  { prefix: 'e701', jwk: (bytes) => ({ kty: 'EC', crv: 'secp256k1', ...point(bytes, 'secp256k1') }) },
  { prefix: 'ed01', jwk: (bytes) => ({ kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }) },
];

/** Whether an issuer's name is its key. */
export function isDidKey(id: string): boolean {
  return id.startsWith(PREFIX);
}

/** The key in a `did:key`, under the ids that tokens may call it by; undefined when unreadable. */
export function keysOfDidKey(did: string): KeysById | undefined {
  const name = did.slice(PREFIX.length);
  const jwk = readMultikey(name);
  if (jwk === undefined) return undefined;
  const reading = readPublicKey(jwk);
  return reading.ok ? new Map([`${did}#${name}`, `#${name}`].map((kid) => [kid, reading.key])) : undefined;
}

/**
 * The public key in a Multikey text: `z`, and base58btc of a multicodec code and the key's bytes.
 * Undefined for other codes, other lengths, points beside the curve, and any other spelling.
 */
export function readMultikey(text: string): JsonObject | undefined {
  if (!text.startsWith('z') || text.length > MAX_LENGTH) return undefined;
  const bytes = readBase58(text.slice(1));
  if (bytes === undefined) return undefined;
  const kind = KINDS.find(({ prefix }) => bytes.toString('hex', 0, 2) === prefix);
  if (kind === undefined) return undefined;
  try {
    return kind.jwk(bytes.subarray(2));
  } catch {
    // Not as long as a point, or no point of the curve has this x.
    return undefined;
  }
}

/** The coordinates of a compressed point (SEC 1, 2.3.4). @throws Error for bytes that are none */
function point(bytes: Buffer, curve: string): { readonly x: string; readonly y: string } {
  const whole = ECDH.convertKey(bytes, curve, undefined, undefined, 'uncompressed');
  if (typeof whole === 'string') throw new TypeError('bytes were asked for');
  return { x: whole.toString('base64url', 1, 33), y: whole.toString('base64url', 33, 65) };
}

/** Leading `1`s are zero bytes; the rest is a number in base 58, which has one spelling. */
function readBase58(text: string): Buffer | undefined {
  let number = 0n;
  for (const char of text) {
    const digit = BASE58.indexOf(char);
    if (digit < 0) return undefined;
    number = number * 58n + BigInt(digit);
  }
  const zeros = text.length - text.replace(/^1+/, '').length;
  const hex = number === 0n ? '' : number.toString(16);
  return Buffer.concat([Buffer.alloc(zeros), Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')]);
}
