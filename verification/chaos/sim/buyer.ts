/** A buyer of the simulation. */

import type { Reply } from './connection.ts';
import { type SignedProof, signProof } from './proof.ts';

/** One purchase, with the proofs signed for it so far. Copies of a call share it. */
export class Purchase {
  readonly proofs: SignedProof[] = [];
  readonly #sign: (answerOf?: string) => SignedProof;

  constructor(sign: (answerOf?: string) => SignedProof) {
    this.#sign = sign;
    this.proofs.push(sign());
  }

  get proof(): SignedProof {
    const last = this.proofs.at(-1);
    if (last === undefined) throw new Error('a purchase without a proof');
    return last;
  }

  /** After a 402 for `refused`: a new payment, unless another copy has signed it already. */
  signAnew(refused: SignedProof, answerOf: string): void {
    if (this.proof === refused) this.proofs.push(this.#sign(answerOf));
  }
}

/** Signs proofs with growing numbers, so that a run is the same every time. */
export function signer(now: () => number, lifeSeconds: () => number, onSigned: (proof: SignedProof) => void) {
  let signed = 0;
  return (answerOf?: string): SignedProof => {
    signed += 1;
    const proof = signProof(signed, now(), lifeSeconds(), answerOf);
    onSigned(proof);
    return proof;
  };
}

/** How a buyer's call ended, named as in contract 4.3; `open` while it may try again. */
export type Ending =
  | 'open'
  | 'answered'
  | 'delivered'
  | 'undelivered'
  | 'refundDue'
  | 'used'
  | 'conflict'
  | 'challenged';

/**
 * A buyer, which repeats a call as the strictest client does: the same proof on anything but 402, a
 * new one on 402 alone.
 */
export interface BuyerPlan {
  readonly name: string;
  readonly purchase: Purchase;
  readonly input: string;
  readonly key: string | undefined;
  /** False for a client that only found the proof. */
  readonly mayPay: boolean;
  /** Which gateway is asked first. */
  readonly gateway: number;
  readonly startMs: number;
}

/** What a buyer can do. */
export interface BuyerPorts {
  /** One attempt; resolves with what came back, at the latest when the buyer disconnects. */
  send(buyer: BuyerPlan, proof: SignedProof, gateway: number): Promise<Reply>;
  sleep(ms: number): Promise<void>;
}

/** Milliseconds. */
const AFTER_RESET = 300;
const AFTER_BUSY = 1_000;
const AFTER_FAILURE = 2_000;

/** Buys, until there is a definite end or `attempts` are used up. */
export async function buy(buyer: BuyerPlan, ports: BuyerPorts, attempts: number): Promise<Ending> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { proof } = buyer.purchase;
    const reply = await ports.send(buyer, proof, buyer.gateway + attempt);
    const ending = endingOf(reply);
    if (ending !== 'open' && ending !== 'challenged') return ending;
    if (reply.kind === 'challenge') {
      if (!buyer.mayPay) return 'challenged';
      buyer.purchase.signAnew(proof, reply.answerOf);
    } else await ports.sleep(pauseAfter(reply));
  }
  return 'open';
}

function endingOf(reply: Reply): Ending {
  switch (reply.kind) {
    case 'answer':
      return 'answered';
    case 'challenge':
      return 'challenged';
    case 'reset':
      return 'open';
    case 'failed':
      return failedEnding(reply);
  }
}

function failedEnding({ code, retryable, details }: Extract<Reply, { kind: 'failed' }>): Ending {
  if (code === 'IDEMPOTENCY_CONFLICT') return 'conflict';
  const state = details?.state;
  if (code === 'BACKEND_ERROR') return retryable ? 'open' : 'undelivered';
  if (code !== 'PAYMENT_REPLAYED') return 'open';
  return state === 'used' || state === 'delivered' || state === 'undelivered' || state === 'refundDue' ? state : 'open';
}

function pauseAfter(reply: Reply): number {
  if (reply.kind === 'reset') return AFTER_RESET;
  return reply.kind === 'failed' && reply.code === 'PAYMENT_REPLAYED' ? AFTER_BUSY : AFTER_FAILURE;
}
