/** The constraints of open test mandates (ap2 2.2). */

import type { Json, JsonObject } from '../../../src/json/json.ts';
import { type Disclosure, discloseElement, placeholder } from './tokens.ts';

/** One constraint, with its disclosures. */
export interface Constraint {
  readonly body: JsonObject;
  readonly disclosures: readonly Disclosure[];
}

export interface Merchant {
  readonly id: string;
  readonly name: string;
  readonly website?: string;
}

export interface Item {
  readonly id: string;
  readonly title: string;
}

/** So many pieces of any of these items. */
export interface Requirement {
  readonly id: string;
  readonly acceptable: readonly Item[];
  readonly quantity: number;
}

export interface Instrument {
  readonly id: string;
  readonly type: string;
}

export const FREQUENCIES = ['ON_DEMAND', 'DAILY', 'WEEKLY', 'BIWEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUALLY'] as const;
export type Frequency = (typeof FREQUENCIES)[number];

/** A constraint without disclosures. */
export function plain(body: JsonObject): Constraint {
  return { body, disclosures: [] };
}

export function lineItems(requirements: readonly Requirement[]): Constraint {
  const lines = requirements.map(({ id, acceptable, quantity }) => {
    const disclosures = acceptable.map((item) => discloseElement({ ...item }));
    return { line: { id, acceptable_items: disclosures.map(placeholder), quantity }, disclosures };
  });
  return {
    body: { type: 'checkout.line_items', items: lines.map(({ line }) => line) },
    disclosures: lines.flatMap(({ disclosures }) => disclosures),
  };
}

export function allowedMerchants(merchants: readonly Merchant[]): Constraint {
  return oneOf('checkout.allowed_merchants', merchants);
}

export function allowedPayees(merchants: readonly Merchant[]): Constraint {
  return oneOf('payment.allowed_payees', merchants);
}

export function allowedInstruments(instruments: readonly Instrument[]): Constraint {
  return oneOf('payment.allowed_payment_instruments', instruments);
}

/** Each element of `allowed` is a disclosure, so that a holder shows only the one that matters. */
function oneOf(type: string, allowed: readonly object[]): Constraint {
  const disclosures = allowed.map((one) => discloseElement({ ...one } as JsonObject));
  return { body: { type, allowed: disclosures.map(placeholder) }, disclosures };
}

/** `max` and `min` in minor units. */
export function amountRange(currency: string, max: Json, min?: Json): Constraint {
  return plain({ type: 'payment.amount_range', currency, max, ...(min === undefined ? {} : { min }) });
}

/** `max` in major units: for budgets AP2 uses those. */
export function budget(currency: string, max: Json): Constraint {
  return plain({ type: 'payment.budget', max, currency });
}

export function recurrence(frequency: Frequency, maxOccurrences?: number): Constraint {
  const most = maxOccurrences === undefined ? {} : { max_occurrences: maxOccurrences };
  return plain({ type: 'payment.agent_recurrence', frequency, ...most });
}

/** Ties a payment mandate to the open checkout mandate with this `sd_hash`. */
export function reference(sdHash: string): Constraint {
  return plain({ type: 'payment.reference', conditional_transaction_id: sdHash });
}
