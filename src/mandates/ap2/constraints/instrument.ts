import type { Json } from '../../../json/types.ts';
import type { PurchasePayment } from '../model/purchase.ts';
import { identity, object, optional, text } from '../model/readers.ts';
import { Refused } from '../model/reasons.ts';
import { sameAddress } from './purchase-check.ts';

/** The payment instrument: for x402 the account (CAIP-10), `<CAIP-2>:<address>` (ap2 7.3). */
export interface Instrument {
  readonly id: string;
  readonly type: string;
}

/** @throws Refused claims_invalid */
export function readInstrument(value: Json | undefined): Instrument {
  const { id, type, description } = object(value);
  optional(description, text);
  return { id: identity(id), type: identity(type) };
}

/** Both, never the id alone: one id may be a card and an account (AP2 issue 320). Accounts of EIP-155 are numbers, whatever their case. */
export function sameInstrument(one: Instrument, other: Instrument): boolean {
  if (one.type !== other.type) return false;
  if (one.id === other.id) return true;
  return one.type === 'x402' && one.id.startsWith(EIP_155) && sameAddress(one.id, other.id);
}

const EIP_155 = 'eip155:';

/** The mandate names the account that the verified proof pays from. @throws Refused payment_method_mismatch, payer_mismatch */
export function checkInstrument({ id, type }: Instrument, payment: PurchasePayment | undefined): void {
  if (payment === undefined || type !== payment.method) throw new Refused('payment_method_mismatch');
  const { network, payer } = payment;
  if (!id.startsWith(`${network}:`)) throw new Refused('payment_method_mismatch');
  const address = id.slice(network.length + 1);
  const same = network.startsWith(EIP_155) ? sameAddress(address, payer) : address === payer;
  if (!same) throw new Refused('payer_mismatch');
}
