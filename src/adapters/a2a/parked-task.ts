import { randomBytes, randomUUID } from 'node:crypto';
import { GatewayError } from '../../errors.ts';
import type { SharedSecrets } from '../../payments/pricing/token-keys.ts';
import { DECLINED, type TaskClaims } from '../../payments/settlement/task-claims.ts';
import type { CarriedProof } from '../../payments/settlement/verifier.ts';
import { decodeProof } from '../../payments/x402/wire/proof-codec.ts';
import type { Exclusive } from '../../pipeline/call.ts';
import { withoutReserved } from '../../resources/prepare.ts';
import {
  keyIdOf,
  type OpenedTask,
  openTask,
  sealTask,
  type TaskKey,
  taskKey,
  type WaitingCall,
} from './sealed-task.ts';

/** A task that waits for its payment, as a follow-up finds it. */
export interface ParkedTask extends OpenedTask {
  /** Who has it: the authorization of a payment, or who declined. Undefined: it is open. */
  readonly holder: string | undefined;
}

/** Tasks that wait for their payment. */
export interface ParkedTasks {
  /** The id of a task that waits for this call from now on. Undefined: the call is too long, or the store was never reached. */
  wait(call: WaitingCall): Promise<string | undefined>;
  /** Undefined for what never waited here, or does not wait any more. @throws StoreError */
  find(taskId: string): Promise<ParkedTask | undefined>;
  /** The task for one payment, whichever comes first. */
  exclusive(task: ParkedTask, claimant: string): Exclusive;
  /** False when a payment has it. @throws StoreError */
  decline(task: ParkedTask): Promise<boolean>;
}

/** Another payment has the task: it came between the look and the claim. */
export class TaskTaken extends GatewayError {
  constructor() {
    super('IDEMPOTENCY_CONFLICT');
  }
}

/** How long a task waits, milliseconds: longer than any challenge is good for, because nothing is kept for it. */
export const WAITS_MS = 3_600_000;
/** The name of the secret under which ids are sealed. */
const SECRET = 'a2a-task';
const SECRET_BYTES = 32;
/** How long the agreed secret counts before it is asked for again, milliseconds: a store that lost it gets it back. */
const AGREED_FOR_MS = 30_000;

/** Tasks whose ids say what was ordered; of the store only claims are asked, and the one secret that all processes share. */
export function parkedTasks(claims: TaskClaims, secrets: SharedSecrets, now: () => number = Date.now): ParkedTasks {
  let candidate = randomBytes(SECRET_BYTES).toString('base64url');
  let agreed: { readonly key: TaskKey; readonly at: number } | undefined;
  const newestKey = async (atMostMs: number): Promise<TaskKey> => {
    if (agreed !== undefined && now() - agreed.at < atMostMs) return agreed.key;
    const last = agreed;
    try {
      candidate = await secrets.agree(SECRET, candidate);
    } catch (error) {
      // What was agreed upon stays good while the store is away.
      if (last !== undefined) return last.key;
      throw error;
    }
    agreed = { key: taskKey(candidate), at: now() };
    return agreed.key;
  };
  /** The key of an id: one that is not known may have been made by another process since. */
  const keyFor = async (id: Buffer): Promise<TaskKey | undefined> => {
    for (const atMostMs of [AGREED_FOR_MS, SECOND_MS]) {
      const key = await newestKey(atMostMs);
      if (key.id.equals(id)) return key;
    }
    return undefined;
  };
  return {
    async wait(call) {
      const sealed = { ...call, input: withoutReserved(call.input) };
      // The plain flow does without a store; what failed shows in the readiness.
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
        // A claim that is not ended ends with its task.
        end: (how) => claims.end(name, claimant, attempt, how).catch(() => undefined),
      };
    },
    decline: ({ name, until }) => claims.decline(name, Math.max(1, until - now())),
  };
}

const SECOND_MS = 1_000;

/** Whether it was declined. */
export function isDeclined({ holder }: ParkedTask): boolean {
  return holder === DECLINED;
}

/** Who authorizes what, whatever the spelling of the proof; undefined for what can never pay. */
export function authorizationOf(proof: CarriedProof): string | undefined {
  const decoded = proof.kind === 'header' ? decodeProof(proof.value) : undefined;
  if (decoded?.kind !== 'decoded') return undefined;
  const { from, nonce } = decoded.payload.payload.authorization;
  return `${from}:${nonce}`;
}
