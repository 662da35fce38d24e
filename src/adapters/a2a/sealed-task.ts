import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { isObject } from '../../json/object.ts';
import type { Json, JsonObject } from '../../json/types.ts';

/** A call whose buyer comes back with the id of its task and a payment (x402 extension of A2A). */
export interface WaitingCall {
  readonly contextId: string;
  readonly resourceId: string;
  readonly input: JsonObject;
}

/** What an id said. */
export interface OpenedTask {
  readonly call: WaitingCall;
  /** What the task is called where claims are kept: of the same id always the same. */
  readonly name: string;
  /** Until when it waits, milliseconds of the wall clock. */
  readonly until: number;
}

/**
 * The largest call that fits into an id, bytes of JSON; an id has about 4/3 of it and 100 characters. What is larger has to be sent again
 * by its buyer.
 */
export const MAX_SEALED_BYTES = 4_096;
const VERSION = 1;
const KEY_ID_BYTES = 4;
const SALT_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES + SALT_BYTES;
const TAG_BYTES = 16;
const MAX_ID_LENGTH = Math.ceil(((HEAD_BYTES + MAX_SEALED_BYTES + TAG_BYTES) * 4) / 3);
/** Each id has a key of its own, so its counter starts at nothing. */
const IV = Buffer.alloc(12);
const ID = /^[A-Za-z0-9_-]+$/;

/** A secret that all processes of a merchant share, and the name of it that ids carry. */
export interface TaskKey {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/** A key out of a shared secret of any length. */
export function taskKey(secret: string): TaskKey {
  const bytes = createHmac('sha256', secret).update('acg a2a task 1').digest();
  return { id: createHash('sha256').update(bytes).digest().subarray(0, KEY_ID_BYTES), secret: bytes };
}

/**
 * The id of a task that waits: what was ordered, sealed (AES-256-GCM under a key derived from a fresh salt). So nothing is kept for those
 * who never pay. Undefined for a call that is too large.
 */
export function sealTask(call: WaitingCall, until: number, key: TaskKey): string | undefined {
  const plain = Buffer.from(JSON.stringify([until, call.contextId, call.resourceId, call.input]));
  if (plain.length > MAX_SEALED_BYTES) return undefined;
  const head = Buffer.concat([Buffer.of(VERSION), key.id, randomBytes(SALT_BYTES)]);
  const cipher = createCipheriv('aes-256-gcm', keyOf(head, key), IV);
  cipher.setAAD(head);
  const sealed = Buffer.concat([head, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return sealed.toString('base64url');
}

/** Which key an id was sealed under; undefined for what is no such id, in its one spelling. */
export function keyIdOf(id: string): Buffer | undefined {
  return bytesOf(id)?.subarray(1, 1 + KEY_ID_BYTES);
}

/** What an id says. Undefined for one that was not sealed under this key, or whose time is over. */
export function openTask(id: string, now: number, key: TaskKey): OpenedTask | undefined {
  const bytes = bytesOf(id);
  if (bytes === undefined) return undefined;
  const head = bytes.subarray(0, HEAD_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', keyOf(head, key), IV, { authTagLength: TAG_BYTES });
  decipher.setAAD(head);
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  let said: Json;
  try {
    const plain = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()]);
    said = JSON.parse(plain.toString('utf8')) as Json;
  } catch {
    return undefined;
  }
  const [until, contextId, resourceId, input] = Array.isArray(said) ? said : [];
  if (typeof until !== 'number' || typeof contextId !== 'string' || typeof resourceId !== 'string' || !isObject(input))
    return undefined;
  if (until <= now) return undefined;
  const name = createHash('sha256').update(bytes).digest('base64url');
  return { call: { contextId, resourceId, input }, name, until };
}

function keyOf(head: Uint8Array, { secret }: TaskKey): Buffer {
  return createHmac('sha256', secret).update(head).digest();
}

/** One spelling only: the same task under two names could be paid twice. */
function bytesOf(id: string): Buffer | undefined {
  if (id.length > MAX_ID_LENGTH || !ID.test(id)) return undefined;
  const bytes = Buffer.from(id, 'base64url');
  if (bytes.length <= HEAD_BYTES + TAG_BYTES || bytes[0] !== VERSION) return undefined;
  return bytes.toString('base64url') === id ? bytes : undefined;
}
