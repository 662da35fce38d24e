/** What the buyer of each call of a run saw. */

import type { Hex } from 'viem';
import type { ResourceId } from './fleet.ts';
import type { Delivered } from './merchant.ts';
import type { Channel } from './wire.ts';

/**
 * The kind of a buyer; all but `honest` and `hasty` want more than they paid for. A `liar`, where
 * there are two networks, signs for one and says the other.
 */
export const ADVERSARIES = ['two_inputs', 'cancel', 'to_self', 'copies', 'hasty'] as const;
export type Kind = 'honest' | 'liar' | (typeof ADVERSARIES)[number];

/** What is bought. */
export interface Target {
  readonly resource: ResourceId;
  readonly input: string;
}

/** An answer with status 200; `delivered` is undefined when it is not the backend's. */
export interface Answered {
  /** When its request was sent. */
  readonly sentAt: number;
  readonly at: number;
  readonly target: Target;
  readonly delivered: Delivered | undefined;
}

/** A reply of the gateway that ends a call without an answer. */
export interface Refusal {
  readonly at: number;
  readonly status: number;
  readonly code: string;
  readonly state: string | undefined;
  readonly hasPayment: boolean;
}

/** One signed authorization and what became of it. Times in Unix milliseconds. */
export interface ProofStory {
  readonly nonce: Hex;
  readonly payer: string;
  readonly payId: string;
  /** The Idempotency-Key that the backend must receive for it. */
  readonly merchantKey: string;
  firstSentAt: number | undefined;
  lastSentAt: number | undefined;
  readonly answers: Answered[];
  readonly refusals: Refusal[];
  /** When requests with it ended without an answer. */
  readonly lostAt: number[];
  /** Reasons given with a 402. */
  readonly challenges: string[];
}

/** One client that sends a proof until it has an end. */
export interface Line {
  readonly proof: ProofStory;
  readonly target: Target;
  /** PAYMENT-SIGNATURE in this client's encoding. */
  readonly header: string;
  end: 'answered' | 'refused' | 'challenged' | undefined;
}

/** One logical call: an intent to buy once. */
export interface CallStory {
  readonly id: number;
  readonly kind: Kind;
  readonly target: Target;
  /** The channel of its buyer; some attempts use another one. */
  readonly channel: Channel;
  /** The caller's own Idempotency-Key. */
  readonly key: string | undefined;
  /**
   * Whether its proofs echo the extensions of their challenge, and with them the buyer's token, as
   * official clients do.
   */
  readonly echoes: boolean;
  readonly proofs: ProofStory[];
  readonly lines: Line[];
  /** Answers that no client should get: status and code. */
  readonly oddities: string[];
}
