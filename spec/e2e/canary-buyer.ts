/** The secrets that the canary spec of checkouts plants, and the calls that carry them. */

import type { JsonObject } from '../../src/json/types.ts';
import { OTHER_TOKEN, SEALING_KEY, SECRET, TOKEN } from '../adapters/acp/testbed.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';

/**
 * Secrets of an assistant, its buyer, the gateway and the merchant, which must not come out
 * anywhere.
 */
export const CANARIES = {
  "a card's token": 'canary_card_token_91fe0a',
  'the number of a card': '4000009876543210',
  'the name on a card': 'Canary Cardholder 5c',
  'a cryptogram': 'canary-cryptogram-AJkBByA3d',
  'the transaction of an authentication': 'canary-transaction-77b0',
  'the number of a purchase order': 'canary-purchase-order-3e',
  'a billing address': 'Canary Billing Street 48',
  'the fingerprint of a device': 'canary-device-fingerprint-a6',
  'the address of a device': '203.0.113.217',
  'what an order notes': 'canary-order-note-90d1',
  'the metadata of a session': 'canary-session-metadata-f2',
  'why a session is canceled': 'canary-intent-trace-04c7',
  'an unknown token': 'canary-authorization-5d20',
  'a signature': 'canary-signature-6ab3f0',
  'a time stamp': '2026-canary-timestamp-77',
  'a cookie': 'canary-cookie-b83e11',
  'a user agent': 'canary-user-agent-88e2',
  'an unknown field': 'canary-unknown-header-13',
  'an unknown session': 'canary-session-id-2ec9',
  'a token in a query': 'canary-token-in-a-query-d5',
  'a secret in a broken body': 'canary-in-a-broken-body-90',
  'a secret in a refused body': 'canary-in-a-refused-body-4c',
  "a secret in the merchant's failure": 'canary-merchants-failure-c1',
  "the merchant's API key": 'canary-merchant-api-key-c04f',
  'the password of Redis': 'canary-redis-password-5b9a0c',
  'the next operator token': 'canary-next-operator-token-7f1e',
  'the operator token': OPERATOR_TOKEN,
  'the token of the assistant': TOKEN,
  'the token of the other assistant': OTHER_TOKEN,
  'the secret of names': SECRET,
  'the sealing key': SEALING_KEY,
} as const;

/** What the caller gets, also in a repeated answer, and nothing else shows. */
export const ECHOED = {
  'an idempotency key': 'canary-idempotency-key-1f20e9',
  "the caller's id of a request": 'canary-request-id-37d4',
  "a buyer's address": 'canary-buyer-61@shop.example',
  'a message of the merchant': 'canary-message-of-the-merchant-7a',
  'the name of a member': 'canary_member_name_e1',
} as const;

/** The secrets that must reach the backend. */
export const FOR_THE_MERCHANT = [
  "a card's token",
  'the number of a card',
  'a cryptogram',
  'the number of a purchase order',
  'the fingerprint of a device',
  'the metadata of a session',
  'why a session is canceled',
  'a signature',
  'a time stamp',
  "the merchant's API key",
] as const satisfies readonly (keyof typeof CANARIES)[];

/** Head fields of every call; `Idempotency-Key` is the caller's own. */
export const FIELDS = {
  signature: CANARIES['a signature'],
  timestamp: CANARIES['a time stamp'],
  cookie: `session=${CANARIES['a cookie']}`,
  'user-agent': CANARIES['a user agent'],
  'x-card': CANARIES['an unknown field'],
  'request-id': ECHOED["the caller's id of a request"],
} as const;

const BUYER = { email: ECHOED["a buyer's address"], first_name: 'Canary' };

export const CREATE: JsonObject = {
  line_items: [{ id: 'item_1' }],
  currency: 'usd',
  capabilities: {},
  buyer: BUYER,
  order_notes: CANARIES['what an order notes'],
  metadata: {
    note: CANARIES['the metadata of a session'],
    card: { number: CANARIES['the number of a card'], token: CANARIES["a card's token"] },
  },
};

export const UPDATE: JsonObject = { buyer: BUYER, order_notes: CANARIES['what an order notes'] };

/** A card wherever the schema admits one: the instrument and the credential are open (acp 3.3). */
export const COMPLETE: JsonObject = {
  payment_data: {
    handler_id: 'card',
    instrument: {
      type: 'card',
      credential: {
        type: 'spt',
        token: CANARIES["a card's token"],
        number: Number(CANARIES['the number of a card']),
        cryptogram: CANARIES['a cryptogram'],
      },
      card_number: CANARIES['the number of a card'],
      holder: { name: CANARIES['the name on a card'] },
    },
    billing_address: {
      name: CANARIES['the name on a card'],
      line_one: CANARIES['a billing address'],
      city: 'Berlin',
      state: 'BE',
      country: 'DE',
      postal_code: '10115',
    },
    purchase_order_number: CANARIES['the number of a purchase order'],
  },
  authentication_result: {
    outcome: 'authenticated',
    outcome_details: {
      three_ds_cryptogram: CANARIES['a cryptogram'],
      electronic_commerce_indicator: '05',
      transaction_id: CANARIES['the transaction of an authentication'],
      version: '2.2.0',
    },
  },
  risk_signals: {
    device_fingerprint: CANARIES['the fingerprint of a device'],
    ip_address: CANARIES['the address of a device'],
  },
};

export const CANCEL: JsonObject = {
  intent_trace: {
    reason_code: 'other',
    trace_summary: CANARIES['why a session is canceled'],
    metadata: { token: CANARIES["a card's token"] },
  },
  note: CANARIES['the number of a card'],
};
