import {
  closed,
  currencyCode,
  dateTime,
  flag,
  integerFrom,
  listOf,
  mapOf,
  numberBetween,
  oneOf,
  text,
} from './kinds.ts';
import { DISCOUNT_CODES } from './message.ts';

const coupon = closed({
  'id*': text,
  'name*': text,
  percent_off: numberBetween(0, 100),
  amount_off: integerFrom(0),
  currency: currencyCode,
  duration: oneOf('once', 'repeating', 'forever'),
  duration_in_months: integerFrom(1),
  max_redemptions: integerFrom(1),
  times_redeemed: integerFrom(0),
  metadata: mapOf(text),
});
/** The discounts of a session (acp 4.1). */
export const discounts = closed({
  codes: listOf(text),
  applied: listOf(
    closed({
      'id*': text,
      'coupon*': coupon,
      'amount*': integerFrom(0),
      code: text,
      automatic: flag,
      start: dateTime,
      end: dateTime,
      method: oneOf('each', 'across'),
      priority: integerFrom(1),
      allocations: listOf(closed({ 'path*': text, 'amount*': integerFrom(0) })),
    }),
  ),
  rejected: listOf(closed({ 'code*': text, 'reason*': oneOf(...DISCOUNT_CODES), message: text })),
});
