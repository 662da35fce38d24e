import type { Json, JsonObject } from '../../json/types.ts';
import { MAX_PARKED_LENGTH, type ParkedCalls } from '../../payments/parked-calls.ts';
import type { CarriedProof } from '../../payments/verifier.ts';
import { decodeProof } from '../../payments/x402/proof-codec.ts';
import { isObject } from '../json-rpc/message.ts';
import { PAYMENT_MEMBER } from './message.ts';

/** A call whose buyer comes back with the name of the task and a payment (x402 extension of A2A). */
export interface WaitingCall {
  readonly contextId: string;
  readonly resourceId: string;
  readonly input: JsonObject;
  /**
   * The authorization that was brought for it: nobody may buy it with a second one while the first may pay. Whoever repeats the
   * same, after a lost answer, goes on, and the ledger answers.
   */
  readonly authorization?: string;
}

/** Calls that wait for their payment, by the id of their task. */
export interface WaitingCalls {
  /** False: the call is too long, or the store does not answer; then its buyer has to send it again. */
  park(taskId: string, call: WaitingCall): Promise<boolean>;
  /** Of several that ask at once, one gets it. @throws StoreError */
  take(taskId: string): Promise<WaitingCall | undefined>;
}

/** The ids that `newTask` makes: nothing else is looked up. */
const TASK_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Calls in the store, each for `forMs` milliseconds. */
export function waitingCalls(parked: ParkedCalls, forMs: number): WaitingCalls {
  return {
    async park(taskId, call) {
      const { [PAYMENT_MEMBER]: _refused, ...input } = call.input;
      const text = JSON.stringify({ ...call, input });
      if (text.length > MAX_PARKED_LENGTH) return false;
      try {
        await parked.park(taskId, text, forMs);
        return true;
      } catch {
        // The plain flow does without a store; what failed shows in the readiness.
        return false;
      }
    },
    async take(taskId) {
      const text = TASK_ID.test(taskId) ? await parked.take(taskId) : undefined;
      return text === undefined ? undefined : readCall(JSON.parse(text) as Json);
    },
  };
}

/** Undefined for what another release wrote in another shape. */
function readCall(call: Json): WaitingCall | undefined {
  if (!isObject(call)) return undefined;
  const { contextId, resourceId, input, authorization } = call;
  if (typeof contextId !== 'string' || typeof resourceId !== 'string' || !isObject(input)) return undefined;
  return { contextId, resourceId, input, ...(typeof authorization === 'string' ? { authorization } : {}) };
}

/** Who authorizes what, whatever the spelling of the proof; undefined for what can never pay. */
export function authorizationOf(proof: CarriedProof): string | undefined {
  const decoded = proof.kind === 'header' ? decodeProof(proof.value) : undefined;
  if (decoded?.kind !== 'decoded') return undefined;
  const { from, nonce } = decoded.payload.payload.authorization;
  return `${from}:${nonce}`;
}
