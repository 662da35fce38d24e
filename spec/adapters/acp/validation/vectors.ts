import type { DocumentName } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json, JsonObject } from '../../../../src/json/json.ts';

/** Valid and invalid values of one member, which show each of its rules from both sides. */
export interface Kind {
  /** The smallest valid value. */
  readonly least: Json;
  /** A valid value with every optional member. */
  readonly full: Json;
  readonly valid: readonly Json[];
  /** Each breaks one rule. */
  readonly invalid: readonly Json[];
}

const text: Kind = { least: '', full: 'x', valid: ['', 'x'], invalid: [null, 7, ['x']] };
const flag: Kind = { least: false, full: true, valid: [true, false], invalid: [null, 'true', 0] };
/** No limits of sign or size. */
const integer: Kind = { least: 0, full: 5, valid: [0, -5, 1e21], invalid: [null, '5', 1.5] };
const number: Kind = { least: 0, full: 1.5, valid: [0, -1.5], invalid: [null, '1.5'] };
const dateTime: Kind = among('2026-04-17T10:00:00Z', {
  valid: ['2026-04-17T10:00:00.25+02:00', '2026-04-17t10:00:00z'],
  invalid: [null, 7, '2026-04-17', '2026-13-17T10:00:00Z', '2026-04-17T10:00:00'],
});
const uri: Kind = among('https://shop.example/a?b#c', {
  valid: ['urn:isbn:1'],
  invalid: [null, 7, '', '/a', 'shop.example'],
});
const email: Kind = among('a@shop.example', { valid: [], invalid: [null, 7, '', 'shop.example', 'a@shop'] });
/** A pattern only: no calendar. */
const date: Kind = among('2026-04-17', {
  valid: ['9999-99-99'],
  invalid: [null, 7, '2026-4-17', ' 2026-04-17', '2026-04-17Z'],
});
const currencyCode: Kind = among('usd', { valid: [], invalid: [null, 7, 'USD', 'us', 'usdc'] });
const scalar: Kind = among('x', { valid: [1.5, true, false], invalid: [null, {}, []] });
const anyObject: Kind = {
  least: {},
  full: { zz_unknown: [null] },
  valid: [{}, { zz_unknown: [null] }],
  invalid: [null, 'x', []],
};

function oneOf(first: string, ...others: readonly string[]): Kind {
  return among(first, {
    valid: others,
    invalid: [null, 7, 'zz_unknown', first.toUpperCase()].filter((v) => v !== first),
  });
}

/** An upper limit is in characters, of which the second kind has two UTF-16 units. */
function textOf(range: { readonly from?: number; readonly to: number }): Kind {
  const { from = 0, to } = range;
  const short = from === 0 ? [] : ['x'.repeat(from - 1)];
  return among('x'.repeat(from), {
    valid: ['x'.repeat(to), '🎉'.repeat(to)],
    invalid: [null, 7, 'x'.repeat(to + 1), ...short],
  });
}

function integerFrom(least: number): Kind {
  return { least, full: least + 2, valid: [least, least + 1, 1e21], invalid: [null, '5', least + 0.5, least - 1] };
}

function numberBetween(least: number, most: number): Kind {
  return { least, full: most, valid: [least, least + 0.5, most], invalid: [null, '5', least - 0.5, most + 0.5] };
}

function listOf(kind: Kind, rules: { readonly from?: 1; readonly unique?: true } = {}): Kind {
  const { from, unique } = rules;
  return {
    least: from === 1 ? [kind.least] : [],
    full: unique ? [kind.full] : [kind.full, kind.full],
    valid: [...(from === 1 ? [] : [[]]), ...kind.valid.map((value) => [value])],
    invalid: [
      null,
      'x',
      {},
      ...kind.invalid.map((value) => [value]),
      ...kind.invalid.slice(0, 1).map((value) => [kind.least, value]),
      ...(from === 1 ? [[]] : []),
      ...(unique ? [[kind.least, kind.least]] : []),
    ],
  };
}

function mapOf(kind: Kind): Kind {
  return {
    least: {},
    full: { a: kind.full, b: kind.full },
    valid: [{}, ...kind.valid.map((value) => ({ a: value }))],
    invalid: [null, 'x', [], ...kind.invalid.map((value) => ({ a: value }))],
  };
}

/** Members whose names end with `*` are required. */
type Members = Readonly<Record<string, Kind>>;

/**
 * Nothing but these members. `beside`: what else the object needs to be valid, where that does not
 * depend on one member alone.
 */
function closed(members: Members, beside: JsonObject = {}): Kind {
  const { least, ...object } = objectOf(members, beside);
  return { ...object, least, invalid: [...object.invalid, { ...least, zz_unknown: 1 }] };
}

/** Unknown members may be among them. */
function open(members: Members, beside: JsonObject = {}): Kind {
  const { least, ...object } = objectOf(members, beside);
  return { ...object, least, valid: [...object.valid, { ...least, zz_unknown: null }] };
}

function objectOf(members: Members, beside: JsonObject): Omit<Kind, 'least'> & { readonly least: JsonObject } {
  const rules = Object.entries(members).map(([name, kind]) => ({
    name: name.replace('*', ''),
    required: name.endsWith('*'),
    kind,
  }));
  const required = rules.filter((rule) => rule.required);
  const least = { ...Object.fromEntries(required.map(({ name, kind }) => [name, kind.least])), ...beside };
  const full = { ...Object.fromEntries(rules.map(({ name, kind }) => [name, kind.full])), ...beside };
  const put = (name: string, values: readonly Json[]) => values.map((value) => ({ ...least, [name]: value }));
  return {
    least,
    full,
    valid: [least, full, ...rules.flatMap(({ name, kind }) => put(name, kind.valid))],
    invalid: [
      null,
      'x',
      [],
      ...required.map(({ name }) => without(least, name)),
      ...rules.flatMap(({ name, kind }) => put(name, kind.invalid)),
    ],
  };
}

function without(object: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([member]) => member !== name));
}

/** One of several forms, chosen by a member. */
function either(first: Kind, ...others: readonly Kind[]): Kind {
  const forms = [first, ...others];
  return {
    least: first.least,
    full: first.full,
    valid: forms.flatMap(({ valid }) => valid),
    invalid: forms.flatMap(({ invalid }) => invalid),
  };
}

function among(value: string, { valid, invalid }: Pick<Kind, 'valid' | 'invalid'>): Kind {
  return { least: value, full: value, valid: [value, ...valid], invalid };
}

/** A total: amounts have neither sign nor limit (acp 4.2). */
const total = closed({
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

/** An item of a request, without quantity (acp 3.1). */
const item = closed({ 'id*': text, name: text, unit_amount: integer });

/** An address (acp 3.5). */
const address = closed({
  'name*': text,
  'line_one*': text,
  line_two: text,
  'city*': text,
  'state*': text,
  'country*': text,
  'postal_code*': text,
  company: text,
});

const buyer = closed({
  'email*': email,
  first_name: text,
  last_name: text,
  full_name: text,
  phone_number: text,
  customer_id: text,
  account_type: oneOf('guest', 'registered', 'business'),
  authentication_status: oneOf('authenticated', 'guest', 'requires_signin'),
  company: closed({ 'name*': text, tax_id: text, department: text, cost_center: text }),
  loyalty: closed({ tier: text, points_balance: integer, member_since: dateTime }),
  tax_exemption: closed({
    'certificate_id*': text,
    'certificate_type*': oneOf('resale', 'exempt_organization', 'government'),
    exempt_regions: listOf(text),
    expires_at: dateTime,
  }),
});

const fulfillmentDetails = closed({ name: text, phone_number: text, email, address });

const fulfillmentGroup = closed({
  'id*': text,
  'item_ids*': listOf(text),
  'destination_type*': oneOf('shipping', 'pickup', 'local_delivery', 'digital'),
  fulfillment_details: fulfillmentDetails,
  location_id: text,
  instructions: text,
});

const selectedFulfillmentOption = closed({
  'type*': oneOf('shipping', 'digital', 'pickup', 'local_delivery'),
  'option_id*': text,
  'item_ids*': listOf(text),
});

const paymentHandler = closed({
  'id*': text,
  'name*': text,
  display_name: text,
  display_order: integer,
  'version*': date,
  'spec*': uri,
  'requires_delegate_payment*': flag,
  'requires_pci_compliance*': flag,
  'psp*': text,
  'config_schema*': uri,
  'instrument_schemas*': listOf(uri),
  'config*': anyObject,
});

const interventions = closed({
  supported: listOf(oneOf('3ds', 'biometric', 'address_verification')),
  required: listOf(oneOf('3ds', 'biometric')),
  enforcement: oneOf('always', 'conditional', 'optional'),
  display_context: oneOf('native', 'webview', 'modal', 'redirect'),
  redirect_context: oneOf('in_app', 'external_browser', 'none'),
  max_redirects: integerFrom(0),
  max_interaction_depth: integerFrom(1),
});

const declaration = closed({
  'name*': {
    least: 'a',
    full: 'com.example.gift-wrap@2026-04-17',
    valid: ['discount', 'gift_wrap-2', 'discount@2026-04-17', 'com.example', 'a2.b_c.d-e'],
    invalid: [null, 7, '', 'Discount', '2a', 'a b', 'a@2026', 'a@2026-04-17Z', 'com.', 'com..a', 'co-m.a', 'com.2a'],
  },
  extends: listOf(
    {
      least: '$.a',
      full: '$.LineItems2.gift_wrap',
      valid: ['$.a', '$.A2.b_c.d'],
      invalid: [null, 7, '$', '$.', '$.2', '$.a_b', '$.a.', '$.a._b', '$.a[0]', 'a', '$.a b'],
    },
    { unique: true },
  ),
  schema: uri,
  spec: uri,
});

/** All names or all declarations, each once, at least one: an empty list would be both. */
const extensions: Kind = {
  least: ['discount'],
  full: [declaration.full, declaration.least],
  valid: [['a', 'b'], [''], ...declaration.valid.map((value) => [value])],
  invalid: [
    ...[null, 'x', {}, [], [7], ['a', 'a'], ['a', declaration.least], [declaration.least, 'a']],
    [declaration.full, declaration.full],
    ...declaration.invalid.filter((value) => typeof value !== 'string').map((value) => [value]),
  ],
};

const capabilities = closed({
  payment: closed({ 'handlers*': listOf(paymentHandler) }),
  interventions,
  extensions,
});

const contentType = oneOf('plain', 'markdown');

const DISCOUNT_CODES = [
  ...['discount_code_expired', 'discount_code_invalid', 'discount_code_already_applied'],
  ...['discount_code_combination_disallowed', 'discount_code_minimum_not_met', 'discount_code_user_not_logged_in'],
  ...['discount_code_user_ineligible', 'discount_code_usage_limit_reached'],
] as const;

const content = {
  'content_type*': contentType,
  'content*': text,
  severity: oneOf('info', 'low', 'medium', 'high', 'critical'),
  resolution: oneOf('recoverable', 'requires_buyer_input', 'requires_buyer_review'),
  param: text,
};
/** Only the first has no code. */
const message = either(
  closed({ 'type*': oneOf('info'), ...content }),
  closed({
    'type*': oneOf('warning'),
    'code*': oneOf(
      ...(['low_stock', 'high_demand', 'shipping_delay', 'price_change', 'expiring_promotion'] as const),
      ...['limited_availability', ...DISCOUNT_CODES],
    ),
    ...content,
  }),
  closed({
    'type*': oneOf('error'),
    'code*': oneOf(
      ...(['missing', 'invalid', 'out_of_stock', 'payment_declined', 'requires_sign_in', 'requires_3ds'] as const),
      ...['low_stock', 'quantity_exceeded', 'coupon_invalid', 'coupon_expired', 'minimum_not_met', 'maximum_exceeded'],
      ...['region_restricted', 'age_verification_required', 'approval_required', 'unsupported', 'not_found'],
      ...['conflict', 'rate_limited', 'expired', 'intervention_required'],
    ),
    ...content,
  }),
);

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
const discounts = closed({
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

/** A line item of a session (acp 4.1). */
const lineItem = closed({
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

const estimatedDelivery = closed({ 'earliest*': dateTime, 'latest*': dateTime });
const lineItemReference = closed({ 'id*': text, 'quantity*': integerFrom(1) });

const orderedItem = closed({
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
const order = closed({
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
  line_items: listOf(orderedItem),
  fulfillments: listOf(fulfillment),
  adjustments: listOf(adjustment),
  totals: listOf(total),
});

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
const session = closed({ ...members, order });
/** The completed session of acp 4.3. */
const sessionWithOrder = closed({ ...members, 'order*': order });

const orderNotes = textOf({ to: 5000 });
const discountCodes = closed({ codes: listOf(text) });

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
const createRequest = closed({
  'line_items*': listOf(item, { from: 1 }),
  'currency*': text,
  'capabilities*': capabilities,
  buyer,
  fulfillment_details: fulfillmentDetails,
  fulfillment_groups: listOf(fulfillmentGroup),
  affiliate_attribution: affiliateAttribution,
  coupons: listOf(text),
  discounts: discountCodes,
  locale: text,
  timezone: text,
  quote_id: text,
  metadata: anyObject,
  order_notes: orderNotes,
});

/** The body of an update (acp 3.2). */
const updateRequest = closed({
  buyer,
  line_items: listOf(item),
  fulfillment_details: fulfillmentDetails,
  fulfillment_groups: listOf(fulfillmentGroup),
  selected_fulfillment_options: listOf(selectedFulfillmentOption),
  coupons: listOf(text),
  discounts: discountCodes,
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
const completeRequest = closed({
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
const cancelRequest = open({
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

/** The Error document (acp 6). */
const error = closed({
  'type*': oneOf('invalid_request', 'processing_error', 'service_unavailable'),
  'code*': text,
  'message*': text,
  param: text,
  supported_versions: listOf(date),
});

/** The discovery document (acp 7). */
const discovery = closed({
  'protocol*': closed({
    'name*': oneOf('acp'),
    'version*': date,
    'supported_versions*': listOf(date, { unique: true }),
    documentation_url: uri,
  }),
  'api_base_url*': uri,
  'transports*': listOf(oneOf('rest', 'mcp'), { unique: true }),
  'capabilities*': closed({
    'services*': listOf(oneOf('checkout', 'orders', 'delegate_payment', 'carts'), { unique: true }),
    extensions: listOf(closed({ 'name*': text, spec: uri, schema: uri })),
    intervention_types: listOf(oneOf('3ds', 'biometric', 'address_verification'), { unique: true }),
    supported_currencies: listOf(currencyCode, { unique: true }),
    supported_locales: listOf(text, { unique: true }),
  }),
});

/** Own vectors: every document of acp 3, 4, 6 and 7, each rule from both sides. */
export const VECTORS: Readonly<Record<DocumentName, Kind>> = {
  CheckoutSessionCreateRequest: createRequest,
  CheckoutSessionUpdateRequest: updateRequest,
  CheckoutSessionCompleteRequest: completeRequest,
  CancelSessionRequest: cancelRequest,
  CheckoutSession: session,
  CheckoutSessionWithOrder: sessionWithOrder,
  DiscoveryResponse: discovery,
  Error: error,
};

export const ITEM = { id: 'item_123' };
/** The smallest answer. */
export const SESSION = VECTORS.CheckoutSession.least as JsonObject;

/** The smallest body of create, with these changes. */
export function createWith(changes: JsonObject): JsonObject {
  return { ...(VECTORS.CheckoutSessionCreateRequest.least as JsonObject), line_items: [ITEM], ...changes };
}
