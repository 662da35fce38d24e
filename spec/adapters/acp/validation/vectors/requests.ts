import {
  anyObject,
  closed,
  dateTime,
  flag,
  type Kind,
  listOf,
  mapOf,
  oneOf,
  open,
  scalar,
  text,
  textOf,
  uri,
} from './kinds.ts';
import {
  address,
  buyer,
  capabilities,
  fulfillmentDetails,
  fulfillmentGroup,
  item,
  selectedFulfillmentOption,
} from './shared.ts';

const orderNotes = textOf({ to: 5000 });
const discounts = closed({ codes: listOf(text) });

const attributed = {
  'provider*': text,
  campaign_id: text,
  creative_id: text,
  sub_id: text,
  source: closed({ 'type*': oneOf('url', 'platform', 'unknown'), url: uri }),
  issued_at: dateTime,
  expires_at: dateTime,
  metadata: mapOf(scalar),
  touchpoint: oneOf('first', 'last'),
};

/** One of token and publisher_id has to be there, and both may. */
const affiliateAttribution: Kind = withForms(open(attributed, { token: 'x' }), {
  valid: [
    { provider: 'x', publisher_id: 'x' },
    { provider: 'x', publisher_id: 'x', token: 'x' },
  ],
  invalid: [
    { provider: 'x' },
    ...[null, 7].flatMap((wrong) => [
      { provider: 'x', token: wrong },
      { provider: 'x', publisher_id: wrong },
    ]),
  ],
});

/** The body of a create (acp 3.1). */
export const createRequest = closed({
  'line_items*': listOf(item, { from: 1 }),
  'currency*': text,
  'capabilities*': capabilities,
  buyer,
  fulfillment_details: fulfillmentDetails,
  fulfillment_groups: listOf(fulfillmentGroup),
  affiliate_attribution: affiliateAttribution,
  coupons: listOf(text),
  discounts,
  locale: text,
  timezone: text,
  quote_id: text,
  metadata: anyObject,
  order_notes: orderNotes,
});

/** The body of an update (acp 3.2). */
export const updateRequest = closed({
  buyer,
  line_items: listOf(item),
  fulfillment_details: fulfillmentDetails,
  fulfillment_groups: listOf(fulfillmentGroup),
  selected_fulfillment_options: listOf(selectedFulfillmentOption),
  coupons: listOf(text),
  discounts,
  order_notes: orderNotes,
});

const credential = open({ 'type*': text, 'token*': text });
const instrument = open({ 'type*': text, 'credential*': credential });

const paid = {
  billing_address: address,
  payment_terms: oneOf('immediate', 'net_15', 'net_30', 'net_60', 'net_90'),
  due_date: dateTime,
  approval_required: flag,
};

/** An instrument of a handler, or a purchase order, or both. */
const paymentData: Kind = withForms(closed(paid, { purchase_order_number: 'x' }), {
  valid: [
    ...instrument.valid.map((value) => ({ handler_id: 'x', instrument: value })),
    { handler_id: 'x', instrument: instrument.least, purchase_order_number: 'x' },
    { handler_id: 'x', purchase_order_number: 'x' },
  ],
  invalid: [
    ...instrument.invalid.map((value) => ({ handler_id: 'x', instrument: value })),
    { handler_id: 'x' },
    { instrument: instrument.least },
    ...[null, 7].flatMap((wrong) => [
      { handler_id: wrong, instrument: instrument.least },
      { purchase_order_number: wrong },
    ]),
    {},
  ],
});

const outcomeDetails = closed({
  'three_ds_cryptogram*': text,
  'electronic_commerce_indicator*': oneOf('01', '02', '05', '06', '07'),
  'transaction_id*': text,
  'version*': text,
});

const DETAILED = ['authenticated', 'informational', 'attempt_acknowledged'];
const BARE = ['abandoned', 'canceled', 'denied', 'internal_error', 'not_supported', 'processing_error', 'rejected'];

/** Three outcomes require the details. */
const authenticationResult: Kind = withForms(
  closed({ 'outcome*': { ...oneOf('denied'), valid: BARE }, outcome_details: outcomeDetails }),
  {
    valid: DETAILED.map((outcome) => ({ outcome, outcome_details: outcomeDetails.least })),
    invalid: [...DETAILED.map((outcome) => ({ outcome })), { outcome_details: outcomeDetails.least }],
  },
);

/** The body of a complete (acp 3.3). */
export const completeRequest = closed({
  'payment_data*': paymentData,
  buyer,
  authentication_result: authenticationResult,
  affiliate_attribution: affiliateAttribution,
  risk_signals: closed({
    ip_address: text,
    user_agent: text,
    accept_language: text,
    session_id: text,
    device_fingerprint: text,
  }),
  marketing_consents: listOf(closed({ 'channel*': text, 'opted_in*': flag })),
  order_notes: orderNotes,
});

/** The body of a cancel (acp 3.4). */
export const cancelRequest = open({
  intent_trace: open({
    'reason_code*': oneOf(
      ...(['price_sensitivity', 'shipping_cost', 'shipping_speed', 'product_fit', 'trust_security'] as const),
      ...['returns_policy', 'payment_options', 'comparison', 'timing_deferred', 'other'],
    ),
    trace_summary: textOf({ to: 500 }),
    metadata: mapOf(scalar),
  }),
});

function withForms(kind: Kind, { valid, invalid }: Pick<Kind, 'valid' | 'invalid'>): Kind {
  return { ...kind, valid: [...kind.valid, ...valid], invalid: [...kind.invalid, ...invalid] };
}
