import type { Json, JsonObject } from '../../../json/types.ts';
import { identity, object, optional, text, whole } from '../model/readers.ts';
import { type Moment, readMoment } from './execution-date.ts';
import { type Instrument, readInstrument } from './instrument.ts';
import { readMerchant } from './merchants.ts';
import { type Pisp, readPisp } from './pisp.ts';

/** A closed payment mandate (ap2 2.1): one payment for one checkout. */
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
