/** What an operation costs: its own `x-price`, else the price for all, else nothing. */

import { isObject, type Json } from '../../src/json/json.ts';
import { AmountError, parseAmount } from '../../src/payments/pricing/amount.ts';
import { Inexpressible } from './references.ts';

export type Price =
  | { readonly type: 'free' }
  | { readonly type: 'fixed'; readonly amount: string; readonly currency: string };

/** More than any token has: what the asset cannot hold is refused by the configuration. */
const MOST_DECIMALS = 36;

/**
 * `amount`: of operations without `x-price`, undefined for free ones. `currency`: of amounts that
 * name none.
 * @throws Inexpressible for an `x-price` that is no price, so that nothing is given away by mistake
 */
export function priceOf(own: Json | undefined, amount: string | undefined, currency: string): Price {
  if (own === undefined) return amount === undefined ? { type: 'free' } : fixed(amount, currency);
  const given = isObject(own) ? own['amount'] : own;
  const named = isObject(own) ? (own['currency'] ?? currency) : currency;
  const text = typeof given === 'number' ? String(given) : given;
  if (typeof text !== 'string' || typeof named !== 'string' || named === '' || named.length > 64)
    throw new Inexpressible('has an x-price that is no price: write an amount such as "0.01", or { amount, currency }');
  const fault = amountFault(text);
  if (fault !== undefined) throw new Inexpressible(`has an x-price that is no price: ${fault}`);
  return fixed(text, named);
}

/** Zero is free. */
function fixed(amount: string, currency: string): Price {
  return /^[0.]+$/.test(amount) ? { type: 'free' } : { type: 'fixed', amount, currency };
}

/** Why a text is no amount; undefined where it is one. */
export function amountFault(text: string): string | undefined {
  try {
    parseAmount(text, MOST_DECIMALS);
    return undefined;
  } catch (error) {
    if (error instanceof AmountError) return error.message;
    throw error;
  }
}
