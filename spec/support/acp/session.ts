/** A session of the sample checkout backend and the document that shows it. */

import type { JsonObject } from '../../../src/json/json.ts';

/** One checkout, as the backend stores it. */
export interface Session {
  readonly id: string;
  /** Base URL of the pages that documents link to. */
  readonly siteUrl: string;
  readonly createdAt: string;
  status: SessionStatus;
  currency: string;
  items: readonly CartItem[];
  buyer: JsonObject | undefined;
  fulfillmentDetails: JsonObject | undefined;
  selected: readonly JsonObject[];
  /** The interventions that the agent supports. */
  readonly interventions: readonly string[];
  /** Messages of the last call to the buyer. */
  messages: readonly JsonObject[];
  /** Ids of the orders made of this checkout. More than one is what a gateway must prevent. */
  readonly orders: string[];
}

/** The states that this merchant uses (acp 5). */
export type SessionStatus =
  | 'not_ready_for_payment'
  | 'ready_for_payment'
  | 'authentication_required'
  | 'in_progress'
  | 'complete_in_progress'
  | 'completed'
  | 'canceled';

/**
 * One line of the cart. Quantities are 1 unless an agent sends some, which this version forbids.
 */
export interface CartItem {
  readonly id: string;
  readonly quantity: number;
}

/** An id that begins so is out of stock. */
export const SOLD_OUT = 'sold_out';
/** Price of everything, minor units. */
export const UNIT_AMOUNT = 1_500;
const SHIPPING_AMOUNT = 500;
const TAX_PERCENT = 10;

/**
 * The session as it goes out: a valid CheckoutSession, and a valid CheckoutSessionWithOrder once
 * there is an order.
 */
export function documentOf(session: Session): JsonObject {
  const { id, status, currency, items, buyer, fulfillmentDetails, selected, messages, createdAt, siteUrl } = session;
  const [order] = session.orders;
  return {
    id,
    protocol: { version: '2026-04-17' },
    capabilities: {
      payment: { handlers: [cardHandler(siteUrl)] },
      interventions: { supported: session.interventions.filter((name) => name === '3ds') },
    },
    ...(buyer === undefined ? {} : { buyer }),
    status,
    currency,
    line_items: items.map(lineItem),
    ...(fulfillmentDetails === undefined ? {} : { fulfillment_details: fulfillmentDetails }),
    fulfillment_options: [SHIPPING],
    ...(selected.length === 0 ? {} : { selected_fulfillment_options: selected }),
    totals: totalsOf(items, selected.length > 0),
    messages,
    links: [{ type: 'terms_of_use', url: `${siteUrl}/terms` }],
    created_at: createdAt,
    ...(status === 'authentication_required' ? { authentication_metadata: AUTHENTICATION } : {}),
    ...(order === undefined || status !== 'completed'
      ? {}
      : { order: { id: order, checkout_session_id: id, permalink_url: `${siteUrl}/orders/${order}` } }),
  };
}

const SHIPPING: JsonObject = {
  type: 'shipping',
  id: 'standard',
  title: 'Standard',
  totals: [{ type: 'total', display_text: 'Shipping', amount: SHIPPING_AMOUNT }],
};

const AUTHENTICATION: JsonObject = {
  acquirer_details: {
    acquirer_bin: '400000',
    acquirer_country: 'DE',
    acquirer_merchant_id: 'merchant-1',
    merchant_name: 'Sample shop',
  },
  directory_server: 'visa',
};

function cardHandler(siteUrl: string): JsonObject {
  return {
    id: 'card',
    name: 'sample.card',
    version: '2026-01-22',
    spec: `${siteUrl}/handlers/card`,
    requires_delegate_payment: true,
    requires_pci_compliance: false,
    psp: 'sample',
    config_schema: `${siteUrl}/handlers/card/config.json`,
    instrument_schemas: [`${siteUrl}/handlers/card/instrument.json`],
    config: {},
  };
}

function lineItem({ id, quantity }: CartItem, index: number): JsonObject {
  const amount = UNIT_AMOUNT * quantity;
  return {
    id: `line_${index + 1}`,
    item: { id },
    quantity,
    name: `Item ${id}`,
    unit_amount: UNIT_AMOUNT,
    availability_status: id.startsWith(SOLD_OUT) ? 'out_of_stock' : 'in_stock',
    totals: [{ type: 'total', display_text: 'Total', amount }],
  };
}

function totalsOf(items: readonly CartItem[], shipped: boolean): readonly JsonObject[] {
  const goods = items.reduce((sum, { quantity }) => sum + quantity * UNIT_AMOUNT, 0);
  const fulfillment = shipped ? SHIPPING_AMOUNT : 0;
  const tax = Math.round(((goods + fulfillment) * TAX_PERCENT) / 100);
  return [
    { type: 'items_base_amount', display_text: 'Items', amount: goods },
    { type: 'fulfillment', display_text: 'Shipping', amount: fulfillment },
    { type: 'tax', display_text: 'Tax', amount: tax },
    { type: 'total', display_text: 'Total', amount: goods + fulfillment + tax },
  ];
}
