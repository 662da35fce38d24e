/** The purchases of the specs of deaths, and their outcome at each step. */

import { randomUUID } from 'node:crypto';
import { type ConfigObject, CURRENCY, merged } from '../../../spec/support/config.ts';
import { sampleResources } from '../../../spec/support/resources.ts';
import type { SampleRequest } from '../../../spec/support/sample-backend.ts';
import { AFTER, SEALING } from '../../../spec/support/settled-after.ts';
import type { PaymentStep } from '../../../src/payments/settlement/attempt.ts';

/**
 * What a buyer may buy: an operation that may be repeated by its method, by its declaration, or not
 * at all, and those that are settled after their call.
 */
export type Kind = 'GET' | 'idempotent POST' | 'plain POST' | LaterKind;
type LaterKind = 'GET settled after' | 'POST settled after';

/** The resources of each kind. */
const SOLD: Readonly<Record<Kind, string>> = {
  GET: 'market_report',
  'idempotent POST': 'echo_again',
  'plain POST': 'echo',
  'GET settled after': 'later_report',
  'POST settled after': 'later_echo',
};

/** What the configuration of a site needs for a kind, beside what every site has. */
export function settingsFor(kind: Kind): { readonly overrides?: ConfigObject } {
  if (!isSettledAfter(kind)) return {};
  const { market_report: report, echo } = sampleResources(CURRENCY) as Readonly<Record<string, ConfigObject>>;
  const resources = { later_report: merged(report ?? {}, AFTER), later_echo: merged(echo ?? {}, AFTER) };
  return { overrides: { storage: { sealing: SEALING }, resources } };
}

function isSettledAfter(kind: Kind): kind is LaterKind {
  return kind.endsWith('settled after');
}

/** One purchase, with a mark that is unique in its file. */
export interface Purchase {
  readonly resourceId: string;
  readonly input: object;
  /** Whether the text is the backend's answer to this purchase. */
  answers(text: string): boolean;
  /** Whether the backend was called for this purchase. */
  asks(request: SampleRequest): boolean;
}

export function purchaseOf(kind: Kind): Purchase {
  const mark = randomUUID();
  const resourceId = SOLD[kind];
  if (kind.startsWith('GET'))
    return {
      resourceId,
      input: { city: mark },
      answers: (text) => (JSON.parse(text) as { readonly city?: unknown }).city === mark,
      asks: ({ url }) => url.includes(mark),
    };
  const input = { mark };
  return {
    resourceId,
    input,
    answers: (text) => text === JSON.stringify(input),
    asks: ({ body }) => body.includes(mark),
  };
}

/**
 * Every step of a call that is paid before it is made, in order. Only a gateway that signs
 * transactions itself passes `signed`.
 */
export const STEPS: readonly PaymentStep[] = [
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
];

/**
 * The same of a call that is settled after the backend answered. One whose settlement has to wait
 * passes `worked` before it.
 */
export const STEPS_AFTER: readonly PaymentStep[] = [
  'reserved',
  'verified',
  'working',
  'settling',
  'sending',
  'signed',
  'answered',
  'settled',
  'relaying',
  'relayed',
  'delivered',
];

/** The outcome of a purchase after a death at a step and the buyer's retry. */
export interface Fate {
  /**
   * `answer`: the buyer gets it, now or once more (contract 4.5); `undelivered`: it can no longer
   * be delivered.
   */
  readonly outcome: 'answer' | 'undelivered';
  /** How often the backend was called in all, always under the one key of the purchase. */
  readonly asked: number;
}

/**
 * For a buyer with a secret: its key, or the token of the 402, which official clients echo. A
 * delivered answer is kept for it.
 */
export function fateOf(kind: Kind, died: PaymentStep): Fate {
  // Before `settling` the backend was not asked, and from there on its answer is kept.
  if (isSettledAfter(kind) || died === 'delivered') return { outcome: 'answer', asked: 1 };
  const left = before(died, 'forwarding') || died === 'forwarding' ? 0 : 1;
  // From `settled` on the record marks the request as possibly sent, so what must not be repeated
  // is not sent.
  if (kind === 'plain POST' && !before(died, 'settled')) return { outcome: 'undelivered', asked: left };
  return { outcome: 'answer', asked: left + 1 };
}

/** The later of the two steps of death. */
export function later(one: PaymentStep, other: PaymentStep = one): PaymentStep {
  return before(one, other) ? other : one;
}

function before(one: PaymentStep, other: PaymentStep): boolean {
  return STEPS.indexOf(one) < STEPS.indexOf(other);
}
