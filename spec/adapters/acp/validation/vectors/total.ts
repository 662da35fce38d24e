import { closed, integer, listOf, number, oneOf, text } from './kinds.ts';

/** A total: amounts have neither sign nor limit (acp 4.2). */
export const total = closed({
  'type*': oneOf(
    ...(['items_base_amount', 'items_discount', 'subtotal', 'discount', 'fulfillment', 'tax', 'fee'] as const),
    ...['gift_wrap', 'tip', 'store_credit', 'total', 'amount_refunded'],
  ),
  'display_text*': text,
  'amount*': integer,
  presentment_amount: integer,
  description: text,
  breakdown: listOf(closed({ 'jurisdiction*': text, 'rate*': number, 'amount*': integer })),
});
