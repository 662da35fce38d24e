/**
 * Seals the data that the store and callers keep, with AES-256-GCM: bytes with one key, a ring of
 * keys for their change, and texts that are marked as sealed.
 */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** One key of a ring: 32 bytes. Its id, at most 255 bytes, stands in what it sealed. */
export interface SealingKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/** One key or more: the first seals, all of them open. */
export type SealingKeys = readonly [SealingKey, ...SealingKey[]];

/** The owner of sealed bytes: they open with no other context. */
type SealContext = readonly (string | number)[];

// Sealed bytes: form (1), length of the key id (1), key id, nonce (12), tag (16), ciphertext.
const PLAIN = 1;
const DEFLATED = 2;
const CIPHER = 'aes-256-gcm';
const HEAD_BYTES = 2;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Below it compressing gains less than it costs. */
const DEFLATE_OVER_BYTES = 2_048;
/** Most bytes that a deflated body inflates to. */
const MAX_UNFOLDED_BYTES = 262_144;
/** Before the base64url of sealed bytes. JSON and hexadecimal text never begin like this. */
const MARK = 'sealed:1:';

/** Hides stored data from readers of the store. */
export interface KeyRing {
  seal(body: Uint8Array, context: SealContext): Buffer;
  /** Undefined when it cannot be opened, for whatever cause. */
  open(sealed: Uint8Array, context: SealContext): Buffer | undefined;
}

/**
 * To change keys without a gap every gateway first gets the new one at the last position, and then
 * at the first. `deflate`: whether large bodies are compressed before.
 */
export function createKeyRing(keys: SealingKeys, options: { readonly deflate?: boolean } = {}): KeyRing {
  const [first] = keys;
  const byId = new Map(keys.map((key) => [key.id, key]));
  return {
    seal: (body, context) => seal(body, first, context, options),
    open(sealed, context) {
      const key = byId.get(keyIdOf(sealed) ?? '');
      if (key === undefined) return undefined;
      try {
        return unseal(sealed, key, context);
      } catch {
        return undefined;
      }
    },
  };
}

/** Whether a text is sealed; a text that was stored without keys is read as it is. */
export function isSealed(text: string): boolean {
  return text.startsWith(MARK);
}

/** The text sealed; one that is sealed already stays as it is. */
export function sealText(ring: KeyRing, text: string, context: SealContext): string {
  return isSealed(text) ? text : MARK + ring.seal(Buffer.from(text, 'utf8'), context).toString('base64url');
}

/** The text that was sealed, or a text that never was; undefined when it cannot be opened. */
export function openText(ring: KeyRing | undefined, text: string, context: SealContext): string | undefined {
  if (!isSealed(text)) return text;
  return ring?.open(Buffer.from(text.slice(MARK.length), 'base64url'), context)?.toString('utf8');
}

/** `deflate`: whether large bodies are compressed, which suits text and costs most of the time. */
export function seal(
  body: Uint8Array,
  { id, key }: SealingKey,
  context: SealContext,
  { deflate = false }: { readonly deflate?: boolean } = {},
): Buffer {
  const form = deflate && body.length > DEFLATE_OVER_BYTES ? DEFLATED : PLAIN;
  const name = Buffer.from(id, 'utf8');
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(bound(form, id, context));
  const hidden = Buffer.concat([cipher.update(form === DEFLATED ? deflateRawSync(body) : body), cipher.final()]);
  const head = Buffer.from([form, name.length]);
  return Buffer.concat([head, name, nonce, cipher.getAuthTag(), hidden]);
}

/** The id of the sealing key; undefined for bytes that are too short to be sealed. */
export function keyIdOf(sealed: Uint8Array): string | undefined {
  const length = sealed[1];
  if (length === undefined || sealed.length < HEAD_BYTES + length + NONCE_BYTES + TAG_BYTES) return undefined;
  return Buffer.from(sealed.subarray(HEAD_BYTES, HEAD_BYTES + length)).toString('utf8');
}

/** @throws Error for another key, another context, or changed bytes */
function unseal(sealed: Uint8Array, { id, key }: SealingKey, context: SealContext): Buffer {
  const [form = 0, length = 0] = sealed;
  const nonceAt = HEAD_BYTES + length;
  const tagAt = nonceAt + NONCE_BYTES;
  const hiddenAt = tagAt + TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(nonceAt, tagAt), { authTagLength: TAG_BYTES });
  decipher.setAAD(bound(form, id, context));
  decipher.setAuthTag(sealed.subarray(tagAt, hiddenAt));
  const opened = Buffer.concat([decipher.update(sealed.subarray(hiddenAt)), decipher.final()]);
  return form === DEFLATED ? inflateRawSync(opened, { maxOutputLength: MAX_UNFOLDED_BYTES }) : opened;
}

/** The data authenticated beside the ciphertext. As JSON, so that no two contexts read alike. */
function bound(form: number, keyId: string, context: SealContext): Buffer {
  return Buffer.from(JSON.stringify([form, keyId, ...context]), 'utf8');
}
