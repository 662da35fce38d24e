import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { MAX_DOCUMENT_BYTES } from './operations.ts';
import type { SealingKey } from './settings.ts';

/** What a sealed answer belongs to. It opens nowhere else. */
export interface SealContext {
  /** The record's name. */
  readonly name: string;
  readonly fingerprint: string;
  readonly status: number;
}

/*
 * Bytes, then base64url: form (1), length of the key id (1), key id, nonce (12), tag (16), ciphertext.
 */
const PLAIN = 1;
const DEFLATED = 2;
/** Smaller bodies gain less than the work costs. */
const DEFLATE_OVER_BYTES = 2_048;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 2;

/** Seals the bytes of an answer with AES-256-GCM. */
export function seal(body: Uint8Array, { id, key }: SealingKey, context: SealContext): string {
  const form = body.length > DEFLATE_OVER_BYTES ? DEFLATED : PLAIN;
  const name = Buffer.from(id, 'utf8');
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(bound(form, id, context));
  const hidden = Buffer.concat([cipher.update(form === DEFLATED ? deflateRawSync(body) : body), cipher.final()]);
  const head = Buffer.from([form, name.length]);
  return Buffer.concat([head, name, nonce, cipher.getAuthTag(), hidden]).toString('base64url');
}

/** The id of the key that it was sealed with; undefined when it is no sealed answer. */
export function keyIdOf(sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  const length = bytes[1];
  if (length === undefined || bytes.length < HEAD_BYTES + length + NONCE_BYTES + TAG_BYTES) return undefined;
  return bytes.toString('utf8', HEAD_BYTES, HEAD_BYTES + length);
}

/** The bytes of the answer. @throws Error when it was sealed with another key, for something else, or was changed */
export function unseal(sealed: string, { id, key }: SealingKey, context: SealContext): Uint8Array {
  const bytes = Buffer.from(sealed, 'base64url');
  const [form = 0, length = 0] = bytes;
  const nonceAt = HEAD_BYTES + length;
  const tagAt = nonceAt + NONCE_BYTES;
  const hiddenAt = tagAt + TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(nonceAt, tagAt), { authTagLength: TAG_BYTES });
  decipher.setAAD(bound(form, id, context));
  decipher.setAuthTag(bytes.subarray(tagAt, hiddenAt));
  const opened = Buffer.concat([decipher.update(bytes.subarray(hiddenAt)), decipher.final()]);
  return form === DEFLATED ? inflateRawSync(opened, { maxOutputLength: MAX_DOCUMENT_BYTES }) : opened;
}

/** What is authenticated beside the ciphertext. As JSON, so that no two contexts read alike. */
function bound(form: number, keyId: string, { name, fingerprint, status }: SealContext): Buffer {
  return Buffer.from(JSON.stringify([form, keyId, name, fingerprint, status]), 'utf8');
}
