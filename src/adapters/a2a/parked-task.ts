/**
 * Parked tasks, which wait for their payment (x402 extension of A2A). The id of a task is its call,
 * sealed; the store keeps only claims and the one secret that all processes share.
 */

import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, randomUUID } from 'node:crypto';
import { GatewayError } from '../../errors.ts';
import { isObject, type Json, type JsonObject } from '../../json/types.ts';
import type { SharedSecrets } from '../../payments/pricing/buyer-token.ts';
import { DECLINED, type TaskClaims } from '../../payments/settlement/task-claims.ts';
import type { CarriedProof } from '../../payments/settlement/verifier.ts';
import { decodeProof } from '../../payments/x402/wire/header-codec.ts';
import type { Exclusive } from '../../pipeline/call.ts';
import { withoutReserved } from '../../resources/prepare.ts';

/** A call whose buyer comes back with the id of its task and a payment. */
export interface ParkedCall {
  readonly contextId: string;
  readonly resourceId: string;
  readonly input: JsonObject;
}

/** The content of an id. */
interface OpenedTask {
  readonly call: ParkedCall;
  /** The name of the task in claims, derived from its id. */
  readonly name: string;
  /** When the task ends, milliseconds of the wall clock. */
  readonly until: number;
}

/** A parked task, as a follow-up finds it. */
export interface ParkedTask extends OpenedTask {
  /** The authorization that has claimed it, or `DECLINED`; undefined: it is open. */
  readonly holder: string | undefined;
}

export interface ParkedTasks {
  /** The id of a new task. Undefined: the call is too large, or the store was never reached. */
  park(call: ParkedCall): Promise<string | undefined>;
  /** Undefined for an id that was not made here, or whose time is over. @throws StoreError */
  find(taskId: string): Promise<ParkedTask | undefined>;
  /** The claim of the task for one payment; the first one gets it. */
  exclusive(task: ParkedTask, claimant: string): Exclusive;
  /** False when a payment has claimed it. @throws StoreError */
  decline(task: ParkedTask): Promise<boolean>;
}

/** Another payment claimed the task after it was looked up. */
export class TaskTaken extends GatewayError {
  constructor() {
    super('IDEMPOTENCY_CONFLICT');
  }
}

/** A secret that all processes share, and the name of it that ids carry. */
interface TaskKey {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/** How long a task waits, milliseconds: longer than any challenge is valid. */
export const WAITS_MS = 3_600_000;
/** The name of the secret under which ids are sealed. */
const SECRET = 'a2a-task';
const SECRET_BYTES = 32;
/** How long an agreed secret is used before it is agreed on again: a store may have lost it. */
const AGREED_FOR_MS = 30_000;
/** The same for an id with an unknown key, which another process may have made since. */
const AGREED_FOR_UNKNOWN_KEY_MS = 1_000;

/** The largest call that is parked, bytes of JSON; an id has 4/3 of it and about 50 characters. */
export const MAX_SEALED_BYTES = 4_096;
const VERSION = 1;
const KEY_ID_BYTES = 4;
const SALT_BYTES = 16;
const HEAD_BYTES = 1 + KEY_ID_BYTES + SALT_BYTES;
const TAG_BYTES = 16;
const MAX_ID_LENGTH = Math.ceil(((HEAD_BYTES + MAX_SEALED_BYTES + TAG_BYTES) * 4) / 3);
/** Each id has a key of its own, so its counter starts at zero. */
const IV = Buffer.alloc(12);
const ID = /^[A-Za-z0-9_-]+$/;

export function parkedTasks(claims: TaskClaims, secrets: SharedSecrets, now: () => number = Date.now): ParkedTasks {
  let candidate = randomBytes(SECRET_BYTES).toString('base64url');
  let agreed: { readonly key: TaskKey; readonly at: number } | undefined;
  const newestKey = async (atMostMs: number): Promise<TaskKey> => {
    if (agreed !== undefined && now() - agreed.at < atMostMs) return agreed.key;
    const last = agreed;
    try {
      candidate = await secrets.agree(SECRET, candidate);
    } catch (error) {
      // The last secret stays valid while the store is away.
      if (last !== undefined) return last.key;
      throw error;
    }
    agreed = { key: taskKey(candidate), at: now() };
    return agreed.key;
  };
  const keyFor = async (id: Buffer): Promise<TaskKey | undefined> => {
    for (const atMostMs of [AGREED_FOR_MS, AGREED_FOR_UNKNOWN_KEY_MS]) {
      const key = await newestKey(atMostMs);
      if (key.id.equals(id)) return key;
    }
    return undefined;
  };
  return {
    async park(call) {
      const sealed = { ...call, input: withoutReserved(call.input) };
      // Without a store the task just ends; readiness reports the failure.
      const key = await newestKey(AGREED_FOR_MS).catch(() => undefined);
      return key === undefined ? undefined : sealTask(sealed, now() + WAITS_MS, key);
    },
    async find(taskId) {
      const id = keyIdOf(taskId);
      const key = id === undefined ? undefined : await keyFor(id);
      const opened = key === undefined ? undefined : openTask(taskId, now(), key);
      return opened === undefined ? undefined : { ...opened, holder: await claims.holder(opened.name) };
    },
    exclusive({ name, until }, claimant) {
      const attempt = randomUUID();
      return {
        async claim() {
          if (!(await claims.claim(name, claimant, attempt, Math.max(1, until - now())))) throw new TaskTaken();
        },
        // A claim that cannot be ended here ends with its task.
        end: (how) => claims.end(name, claimant, attempt, how).catch(() => undefined),
      };
    },
    decline: ({ name, until }) => claims.decline(name, Math.max(1, until - now())),
  };
}

/** A key out of a shared secret of any length. */
export function taskKey(secret: string): TaskKey {
  const bytes = createHmac('sha256', secret).update('acg a2a task 1').digest();
  return { id: createHash('sha256').update(bytes).digest().subarray(0, KEY_ID_BYTES), secret: bytes };
}

/**
 * The id of a parked task: its call, sealed (AES-256-GCM under a key derived from a fresh salt), so
 * that a call that is never paid takes no memory. Undefined for a call that is too large.
 */
export function sealTask(call: ParkedCall, until: number, key: TaskKey): string | undefined {
  const plain = Buffer.from(JSON.stringify([until, call.contextId, call.resourceId, call.input]));
  if (plain.length > MAX_SEALED_BYTES) return undefined;
  const head = Buffer.concat([Buffer.of(VERSION), key.id, randomBytes(SALT_BYTES)]);
  const cipher = createCipheriv('aes-256-gcm', keyOf(head, key), IV);
  cipher.setAAD(head);
  const sealed = Buffer.concat([head, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return sealed.toString('base64url');
}

/** The name of the key that an id is sealed under; undefined for any other text. */
export function keyIdOf(id: string): Buffer | undefined {
  return bytesOf(id)?.subarray(1, 1 + KEY_ID_BYTES);
}

/** Undefined for an id that was not sealed under this key, or whose time is over. */
export function openTask(id: string, now: number, key: TaskKey): OpenedTask | undefined {
  const bytes = bytesOf(id);
  if (bytes === undefined) return undefined;
  const head = bytes.subarray(0, HEAD_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', keyOf(head, key), IV, { authTagLength: TAG_BYTES });
  decipher.setAAD(head);
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  let content: Json;
  try {
    const plain = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()]);
    content = JSON.parse(plain.toString('utf8')) as Json;
  } catch {
    return undefined;
  }
  const [until, contextId, resourceId, input] = Array.isArray(content) ? content : [];
  if (typeof until !== 'number' || typeof contextId !== 'string' || typeof resourceId !== 'string' || !isObject(input))
    return undefined;
  if (until <= now) return undefined;
  const name = createHash('sha256').update(bytes).digest('base64url');
  return { call: { contextId, resourceId, input }, name, until };
}

function keyOf(head: Uint8Array, { secret }: TaskKey): Buffer {
  return createHmac('sha256', secret).update(head).digest();
}

/** Accepts one spelling only: a task under two names could be paid twice. */
function bytesOf(id: string): Buffer | undefined {
  if (id.length > MAX_ID_LENGTH || !ID.test(id)) return undefined;
  const bytes = Buffer.from(id, 'base64url');
  if (bytes.length <= HEAD_BYTES + TAG_BYTES || bytes[0] !== VERSION) return undefined;
  return bytes.toString('base64url') === id ? bytes : undefined;
}

export function isDeclined({ holder }: ParkedTask): boolean {
  return holder === DECLINED;
}

/** Payer and nonce of a proof, in any spelling; undefined for a proof that cannot be read. */
export function authorizationOf(proof: CarriedProof): string | undefined {
  const decoded = proof.kind === 'header' ? decodeProof(proof.value) : undefined;
  if (decoded?.kind !== 'decoded') return undefined;
  const { from, nonce } = decoded.payload.payload.authorization;
  return `${from}:${nonce}`;
}
