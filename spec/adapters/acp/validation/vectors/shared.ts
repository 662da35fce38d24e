import {
  anyObject,
  closed,
  date,
  dateTime,
  email,
  flag,
  integer,
  integerFrom,
  type Kind,
  listOf,
  oneOf,
  text,
  uri,
} from './kinds.ts';

/** An item of a request, without quantity (acp 3.1). */
export const item = closed({ 'id*': text, name: text, unit_amount: integer });

/** An address (acp 3.5). */
export const address = closed({
  'name*': text,
  'line_one*': text,
  line_two: text,
  'city*': text,
  'state*': text,
  'country*': text,
  'postal_code*': text,
  company: text,
});

export const buyer = closed({
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

export const fulfillmentDetails = closed({ name: text, phone_number: text, email, address });

export const fulfillmentGroup = closed({
  'id*': text,
  'item_ids*': listOf(text),
  'destination_type*': oneOf('shipping', 'pickup', 'local_delivery', 'digital'),
  fulfillment_details: fulfillmentDetails,
  location_id: text,
  instructions: text,
});

export const selectedFulfillmentOption = closed({
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

export const capabilities = closed({
  payment: closed({ 'handlers*': listOf(paymentHandler) }),
  interventions,
  extensions,
});
