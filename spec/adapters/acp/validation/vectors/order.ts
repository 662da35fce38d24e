import {
  closed,
  currencyCode,
  dateTime,
  email,
  flag,
  integer,
  integerFrom,
  listOf,
  oneOf,
  open,
  text,
  uri,
} from './kinds.ts';
import { address } from './shared.ts';
import { total } from './total.ts';

const estimatedDelivery = closed({ 'earliest*': dateTime, 'latest*': dateTime });
const lineItemReference = closed({ 'id*': text, 'quantity*': integerFrom(1) });

const lineItem = closed({
  'id*': text,
  'title*': text,
  'quantity*': closed({ 'ordered*': integerFrom(1), 'current*': integerFrom(0), fulfilled: integerFrom(0) }),
  product_id: text,
  description: text,
  image_url: uri,
  url: uri,
  unit_price: integer,
  subtotal: integer,
  totals: listOf(total),
  status: text,
});

const fulfillment = closed({
  'id*': text,
  'type*': oneOf('shipping', 'pickup', 'digital'),
  status: text,
  line_items: listOf(lineItemReference),
  carrier: text,
  tracking_number: text,
  tracking_url: uri,
  destination: address,
  estimated_delivery: estimatedDelivery,
  digital_delivery: open({ access_url: uri, license_key: text, expires_at: dateTime }),
  description: text,
  events: listOf(closed({ 'id*': text, 'type*': text, 'occurred_at*': dateTime, description: text, location: text })),
});

const adjustment = closed({
  'id*': text,
  'type*': text,
  'occurred_at*': dateTime,
  'status*': text,
  line_items: listOf(lineItemReference),
  amount: integer,
  currency: currencyCode,
  description: text,
  reason: text,
});

/** An order; its status is any text (acp 4.1). */
export const order = closed({
  'id*': text,
  'checkout_session_id*': text,
  'permalink_url*': uri,
  type: oneOf('order'),
  order_number: text,
  client_reference_id: text,
  status: text,
  estimated_delivery: estimatedDelivery,
  confirmation: closed({
    confirmation_number: text,
    confirmation_email_sent: flag,
    receipt_url: uri,
    invoice_number: text,
    order_notes: text,
  }),
  support: closed({ email, phone: text, hours: text, help_center_url: uri }),
  line_items: listOf(lineItem),
  fulfillments: listOf(fulfillment),
  adjustments: listOf(adjustment),
  totals: listOf(total),
});
