import { discounts } from './discounts.ts';
import {
  anyObject,
  closed,
  date,
  dateTime,
  either,
  flag,
  listOf,
  number,
  oneOf,
  open,
  text,
  textOf,
  uri,
} from './kinds.ts';
import { lineItem } from './line-item.ts';
import { message } from './message.ts';
import { order } from './order.ts';
import {
  address,
  buyer,
  capabilities,
  fulfillmentDetails,
  fulfillmentGroup,
  selectedFulfillmentOption,
} from './shared.ts';
import { total } from './total.ts';

const option = { 'id*': text, 'title*': text, 'totals*': listOf(total), description: text };
const fulfillmentOption = either(
  closed({
    'type*': oneOf('shipping'),
    ...option,
    carrier: text,
    earliest_delivery_time: dateTime,
    latest_delivery_time: dateTime,
  }),
  closed({ 'type*': oneOf('digital'), ...option }),
  closed({
    'type*': oneOf('pickup'),
    ...option,
    'location*': open({ 'name*': text, 'address*': address, phone: text, instructions: text }),
    pickup_type: oneOf('in_store', 'curbside', 'locker'),
    ready_by: dateTime,
    pickup_by: dateTime,
  }),
  closed({
    'type*': oneOf('local_delivery'),
    ...option,
    delivery_window: open({ 'start*': dateTime, 'end*': dateTime }),
    service_area: open({ radius_miles: number, center_postal_code: text }),
  }),
);

const authenticationMetadata = open({
  'acquirer_details*': closed({
    'acquirer_bin*': textOf({ to: 11 }),
    'acquirer_country*': textOf({ from: 2, to: 2 }),
    'acquirer_merchant_id*': textOf({ to: 35 }),
    'merchant_name*': textOf({ to: 40 }),
    requestor_id: textOf({ to: 35 }),
  }),
  'directory_server*': oneOf('american_express', 'mastercard', 'visa'),
  flow_preference: closed({
    'type*': oneOf('challenge', 'frictionless'),
    challenge: closed({ type: oneOf('mandated', 'preferred') }),
    frictionless: closed({ type: oneOf('low_risk') }),
  }),
});

const members = {
  'id*': text,
  'status*': oneOf(
    ...(['incomplete', 'not_ready_for_payment', 'requires_escalation', 'authentication_required'] as const),
    ...['ready_for_payment', 'pending_approval', 'complete_in_progress', 'completed', 'canceled'],
    ...['in_progress', 'expired'],
  ),
  'currency*': text,
  'line_items*': listOf(lineItem),
  'totals*': listOf(total),
  'fulfillment_options*': listOf(fulfillmentOption),
  'messages*': listOf(message),
  'links*': listOf(
    closed({
      'type*': oneOf(
        ...(['terms_of_use', 'privacy_policy', 'return_policy', 'shipping_policy', 'contact_us', 'about_us'] as const),
        ...['faq', 'support'],
      ),
      'url*': uri,
      title: text,
    }),
  ),
  'capabilities*': capabilities,
  protocol: closed({ 'version*': date }),
  buyer,
  presentment_currency: text,
  exchange_rate: number,
  exchange_rate_timestamp: dateTime,
  locale: text,
  timezone: text,
  fulfillment_details: fulfillmentDetails,
  selected_fulfillment_options: listOf(selectedFulfillmentOption),
  fulfillment_groups: listOf(fulfillmentGroup),
  authentication_metadata: authenticationMetadata,
  created_at: dateTime,
  updated_at: dateTime,
  expires_at: dateTime,
  continue_url: uri,
  metadata: anyObject,
  quote_id: text,
  quote_expires_at: dateTime,
  discounts,
  marketing_consent_options: listOf(
    closed({ 'channel*': text, 'display_text*': text, 'privacy_policy_url*': uri, is_subscribed: flag }),
  ),
};

/** The session of acp 4.1. */
export const session = closed({ ...members, order });
/** The completed session of acp 4.3. */
export const sessionWithOrder = closed({ ...members, 'order*': order });
