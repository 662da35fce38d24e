import { closed, dateTime, flag, integer, integerFrom, listOf, number, oneOf, text, uri } from './kinds.ts';
import { contentType } from './message.ts';
import { item } from './shared.ts';
import { total } from './total.ts';

/** A line item of a session (acp 4.1). */
export const lineItem = closed({
  'id*': text,
  'item*': item,
  'quantity*': integerFrom(1),
  'totals*': listOf(total),
  name: text,
  description: text,
  images: listOf(uri),
  unit_amount: integer,
  disclosures: listOf(closed({ 'type*': oneOf('disclaimer'), 'content_type*': contentType, 'content*': text })),
  custom_attributes: listOf(closed({ 'display_name*': text, 'value*': text })),
  marketplace_seller_details: closed({ 'name*': text }),
  product_id: text,
  sku: text,
  variant_id: text,
  category: text,
  tags: listOf(text),
  weight: closed({ 'value*': number, 'unit*': oneOf('g', 'kg', 'oz', 'lb') }),
  dimensions: closed({ 'length*': number, 'width*': number, 'height*': number, 'unit*': oneOf('cm', 'in') }),
  availability_status: oneOf('in_stock', 'low_stock', 'out_of_stock', 'backorder', 'pre_order'),
  available_quantity: integerFrom(0),
  max_quantity_per_order: integerFrom(1),
  fulfillable_on: dateTime,
  variant_options: listOf(closed({ 'name*': text, 'value*': text })),
  discount_details: listOf(
    closed({
      'type*': oneOf('percentage', 'fixed', 'bogo', 'volume'),
      'amount*': integer,
      code: text,
      description: text,
      source: oneOf('coupon', 'automatic', 'loyalty'),
    }),
  ),
  tax_exempt: flag,
  tax_exemption_reason: text,
  parent_id: text,
});
