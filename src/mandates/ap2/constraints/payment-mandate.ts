/** Reads a closed payment mandate (ap2 2.1), and the values that constraints compare it with. */

import type { Json, JsonObject } from '../../../json/types.ts';
import { type PurchasePayment, sameAddress } from '../model/purchase.ts';
import { identity, list, object, optional, text, whole } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';

const DAY_MS = 86_400_000;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** A time without its zone could be one of 27 hours. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;
const EIP_155 = 'eip155:';

/** A closed payment mandate: one payment for one checkout. */
export interface PaymentMandate {
  /** The hash of the checkout. */
  readonly transactionId: string;
  readonly payeeId: string;
  /** Minor units. */
  readonly amount: number;
  readonly currency: string;
  readonly instrument: Instrument;
  readonly pisp: Pisp | undefined;
  /** Undefined: now. */
  readonly executionDate: Moment | undefined;
}

/** The payment instrument: for x402 the account (CAIP-10), `<CAIP-2>:<address>` (ap2 7.3). */
interface Instrument {
  readonly id: string;
  readonly type: string;
}

/** A payment initiation service; two are the same when all three names are. */
interface Pisp {
  readonly legalName: string;
  readonly brandName: string;
  readonly domainName: string;
}

/** A merchant as AP2 names one; only the id identifies it. An empty id equals no merchant's. */
interface MerchantName {
  readonly id: string;
}

/** A time, or the day of a date without a time. Unix milliseconds, both ends included. */
interface Moment {
  readonly first: number;
  readonly last: number;
}

/** @throws Refused claims_invalid */
export function readPaymentMandate(closed: JsonObject): PaymentMandate {
  const { transaction_id, payee, payment_amount, payment_instrument, pisp, execution_date, risk_data } = closed;
  optional(risk_data, object);
  return {
    transactionId: identity(transaction_id),
    payeeId: readMerchant(payee).id,
    ...readAmount(payment_amount),
    instrument: readInstrument(payment_instrument),
    pisp: optional(pisp, readPisp),
    executionDate: optional(execution_date, (date) => readMoment(text(date))),
  };
}

function readAmount(value: Json | undefined): { readonly amount: number; readonly currency: string } {
  const { amount, currency } = object(value);
  return { amount: whole(amount, 0), currency: identity(currency) };
}

/** The disclosed merchants of a list. @throws Refused claims_invalid */
export function readMerchants(allowed: Json | undefined): readonly MerchantName[] {
  return list(allowed).map(readMerchant);
}

function readMerchant(value: Json | undefined): MerchantName {
  const { id, name, website } = object(value);
  text(name);
  optional(website, text);
  return { id: text(id) };
}

/** @throws Refused claims_invalid */
export function readInstrument(value: Json | undefined): Instrument {
  const { id, type, description } = object(value);
  optional(description, text);
  return { id: identity(id), type: identity(type) };
}

/**
 * Compares type and id: one id may be a card and an account (AP2 issue 320). Accounts of EIP-155
 * are numbers, whatever their case.
 */
export function sameInstrument(one: Instrument, other: Instrument): boolean {
  if (one.type !== other.type) return false;
  if (one.id === other.id) return true;
  return one.type === 'x402' && one.id.startsWith(EIP_155) && sameAddress(one.id, other.id);
}

/**
 * The mandate names the account that the verified proof pays from.
 * @throws Refused payment_method_mismatch, payer_mismatch
 */
export function checkInstrument({ id, type }: Instrument, payment: PurchasePayment | undefined): void {
  if (payment === undefined || type !== payment.method) throw new Refused('payment_method_mismatch');
  const { network, payer } = payment;
  if (!id.startsWith(`${network}:`)) throw new Refused('payment_method_mismatch');
  const address = id.slice(network.length + 1);
  const same = network.startsWith(EIP_155) ? sameAddress(address, payer) : address === payer;
  if (!same) throw new Refused('payer_mismatch');
}

/** @throws Refused claims_invalid */
export function readPisp(value: Json): Pisp {
  const { legal_name, brand_name, domain_name } = object(value);
  return { legalName: text(legal_name), brandName: text(brand_name), domainName: text(domain_name) };
}

export function samePisp(one: Pisp, other: Pisp): boolean {
  return one.legalName === other.legalName && one.brandName === other.brandName && one.domainName === other.domainName;
}

/** Reads ISO 8601: a date (a day of UTC), or a time with zone. @throws Refused claims_invalid */
export function readMoment(text: string): Moment {
  const day = DATE.test(text);
  const first = day || DATE_TIME.test(text) ? Date.parse(text) : Number.NaN;
  // The parser moves days that a month does not have to the next month.
  if (Number.isNaN(first) || !isCalendarDay(text.slice(0, 10))) throw new Refused('claims_invalid');
  return { first, last: day ? first + DAY_MS - 1 : first };
}

function isCalendarDay(date: string): boolean {
  const at = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date);
}
