import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** One key of a ring: 32 bytes. Its id, at most 255 bytes, stands in what it sealed. */
export interface SealingKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/** What sealed bytes belong to: they open nowhere else. */
export type SealContext = readonly (string | number)[];

/*
 * Form (1), length of the key id (1), key id, nonce (12), tag (16), ciphertext.
 */
const PLAIN = 1;
const DEFLATED = 2;
/** Smaller ones gain less than the work costs. */
const DEFLATE_OVER_BYTES = 2_048;
/** Nothing that was sealed unfolds to more, bytes. */
const MAX_UNFOLDED_BYTES = 262_144;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 2;

/** Seals with AES-256-GCM. `deflate`: whether more than 2 kB are compressed before, which text deserves and costs most of the time. */
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

/** The id of the key that they were sealed with; undefined for what is not sealed. */
export function keyIdOf(sealed: Uint8Array): string | undefined {
  const length = sealed[1];
  if (length === undefined || sealed.length < HEAD_BYTES + length + NONCE_BYTES + TAG_BYTES) return undefined;
  return Buffer.from(sealed.subarray(HEAD_BYTES, HEAD_BYTES + length)).toString('utf8');
}

/** The bytes that were sealed. @throws Error when it was with another key, for something else, or they were changed */
export function unseal(sealed: Uint8Array, { id, key }: SealingKey, context: SealContext): Buffer {
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

/** What is authenticated beside the ciphertext. As JSON, so that no two contexts read alike. */
function bound(form: number, keyId: string, context: SealContext): Buffer {
  return Buffer.from(JSON.stringify([form, keyId, ...context]), 'utf8');
}
