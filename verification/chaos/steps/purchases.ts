/** What is bought in the specs of deaths, and what must become of it at each step. */

import { randomUUID } from 'node:crypto';
import type { SampleRequest } from '../../../spec/support/sample-backend.ts';
import type { PaymentStep } from '../../../src/payments/steps.ts';

/** What a buyer may buy: an operation that may be repeated by nature, by promise, or not at all. */
export type Kind = 'GET' | 'idempotent POST' | 'plain POST';

/** One purchase that can be told from all others of a file by its mark. */
export interface Purchase {
  readonly resourceId: string;
  readonly input: object;
  /** Whether the merchant's answer to this purchase is the text. */
  answers(text: string): boolean;
  /** Whether the merchant was asked for this purchase. */
  asks(request: SampleRequest): boolean;
}

export function purchaseOf(kind: Kind): Purchase {
  const mark = randomUUID();
  if (kind === 'GET')
    return {
      resourceId: 'market_report',
      input: { city: mark },
      answers: (text) => (JSON.parse(text) as { readonly city?: unknown }).city === mark,
      asks: ({ url }) => url.includes(mark),
    };
  const input = { mark };
  return {
    resourceId: kind === 'plain POST' ? 'echo' : 'echo_again',
    input,
    answers: (text) => text === JSON.stringify(input),
    asks: ({ body }) => body.includes(mark),
  };
}

/**
 * Every step of a paid call, in order. Only a gateway that signs transactions itself passes
 * `signed`.
 */
export const STEPS = [
  'reserved',
  'verified',
  'settling',
  'sending',
  'signed',
  'answered',
  'settled',
  'forwarding',
  'relaying',
  'relayed',
  'delivered',
] as const satisfies readonly PaymentStep[];

/** What must have become of a purchase after a death at a step and the buyer's return. */
export interface Fate {
  /**
   * `answer`: he has it, now or once more (contract 4.5); `undelivered`: he is told that it cannot
   * be had any more.
   */
  readonly told: 'answer' | 'undelivered';
  /** How often the merchant was asked in all, always under the one key of the purchase. */
  readonly asked: number;
}

/**
 * Of a buyer with a secret: his key, or the token of the 402, which official clients echo. What was
 * delivered is kept for it.
 */
export function fateOf(kind: Kind, died: PaymentStep): Fate {
  if (died === 'delivered') return { told: 'answer', asked: 1 };
  const left = before(died, 'forwarding') || died === 'forwarding' ? 0 : 1;
  // From `settled` on the record says that the request may be on its way, so what must not be
  // repeated is not sent.
  if (kind === 'plain POST' && !before(died, 'settled')) return { told: 'undelivered', asked: left };
  return { told: 'answer', asked: left + 1 };
}

/** How far a purchase came in two lives. */
export function later(one: PaymentStep, other: PaymentStep = one): PaymentStep {
  return before(one, other) ? other : one;
}

function before(one: PaymentStep, other: PaymentStep): boolean {
  return STEPS.indexOf(one) < STEPS.indexOf(other);
}
