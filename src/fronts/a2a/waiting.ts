import { withoutReserved } from '../../catalogue/prepare.ts';
import { isObject } from '../../json/object.ts';
import type { Json, JsonObject } from '../../json/types.ts';
import { MAX_PARKED_LENGTH, type ParkedCalls } from '../../payments/parked-calls.ts';
import type { CarriedProof } from '../../payments/verifier.ts';
import { decodeProof } from '../../payments/x402/proof-codec.ts';

/** A call whose buyer comes back with the name of the task and a payment (x402 extension of A2A). */
export interface WaitingCall {
  readonly contextId: string;
  readonly resourceId: string;
  readonly input: JsonObject;
}

/** What came of claiming a call; see ParkedClaim. */
export type WaitingClaim =
  | { readonly kind: 'yours'; readonly call: WaitingCall; readonly again: boolean }
  | { readonly kind: 'taken' }
  | { readonly kind: 'none' };

/** Calls that wait for their payment, by the id of their task. */
export interface WaitingCalls {
  /** False: the call is too long, too many wait, or the store does not answer; then its buyer has to send it again. */
  park(taskId: string, call: WaitingCall): Promise<boolean>;
  /** A call belongs to the first who claims it. @throws StoreError */
  claim(taskId: string, claimant: string): Promise<WaitingClaim>;
  /** What its claimant brought is worthless: anybody may claim it again. False when it does not wait any more. */
  release(taskId: string, claimant: string): Promise<boolean>;
}

/** The ids that `newTask` makes: nothing else is looked up. */
const TASK_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** How long a claimed call outlives its challenge, milliseconds: its buyer may ask again while his payment is in question. */
const CLAIMED_FOR_MS = 600_000;
/** How long a declined call is kept, milliseconds: for a buyer who declines twice because he was not answered. */
const DECLINED_FOR_MS = 5_000;
/** Who declines a task claims it as this: nobody pays for it any more, and it is forgotten a moment later. */
export const DECLINED = 'declined';

/** Calls in the store, each for `forMs` milliseconds until it is claimed. */
export function waitingCalls(parked: ParkedCalls, forMs: number): WaitingCalls {
  return {
    async park(taskId, call) {
      const text = JSON.stringify({ ...call, input: withoutReserved(call.input) });
      if (text.length > MAX_PARKED_LENGTH) return false;
      // The plain flow does without a store; what failed shows in the readiness.
      return parked.park(taskId, text, forMs).catch(() => false);
    },
    async claim(taskId, claimant) {
      if (!TASK_ID.test(taskId)) return { kind: 'none' };
      const keptMs = claimant === DECLINED ? DECLINED_FOR_MS : forMs + CLAIMED_FOR_MS;
      const claim = await parked.claim(taskId, claimant, keptMs);
      if (claim.kind !== 'yours') return claim;
      const call = readCall(JSON.parse(claim.call) as Json);
      return call === undefined ? { kind: 'none' } : { kind: 'yours', call, again: claim.again };
    },
    release: (taskId, claimant) => parked.release(taskId, claimant, forMs).catch(() => false),
  };
}

/** Undefined for what another release wrote in another shape. */
function readCall(call: Json): WaitingCall | undefined {
  if (!isObject(call)) return undefined;
  const { contextId, resourceId, input } = call;
  if (typeof contextId !== 'string' || typeof resourceId !== 'string' || !isObject(input)) return undefined;
  return { contextId, resourceId, input };
}

/** Who authorizes what, whatever the spelling of the proof; undefined for what can never pay. */
export function authorizationOf(proof: CarriedProof): string | undefined {
  const decoded = proof.kind === 'header' ? decodeProof(proof.value) : undefined;
  if (decoded?.kind !== 'decoded') return undefined;
  const { from, nonce } = decoded.payload.payload.authorization;
  return `${from}:${nonce}`;
}
