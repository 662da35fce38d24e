/** The state machine of the sample checkout backend: what each operation does to a session. */

import type { Operation } from '../../../src/checkouts/operations.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/json.ts';
import { type CartItem, documentOf, type Session, SOLD_OUT } from './session.ts';

/** An answer of the backend: a status and a document, a session or an Error. */
export interface CheckoutAnswer {
  readonly status: number;
  readonly document: JsonObject;
}

/** Checkouts in memory, and what the five operations do to them. */
export interface SampleCheckouts {
  readonly sessions: ReadonlyMap<string, Session>;
  /** `sessionId`: decoded, undefined for create. `key`: the caller's idempotency key. */
  act(operation: Operation, sessionId: string | undefined, body: JsonObject, key: string | undefined): CheckoutAnswer;
}

/** A token of an instrument that the bank declines. */
export const DECLINED_TOKEN = 'tok_declined';
/** A token of an instrument that needs 3D Secure. */
export const THREE_DS_TOKEN = 'tok_3ds';

/**
 * Opens the checkouts. `dedupe`: an equal idempotency key gets the first answer again. Without it
 * a repeated complete makes another order.
 */
export function openCheckouts({
  dedupe,
  siteUrl,
}: {
  readonly dedupe: boolean;
  readonly siteUrl: string;
}): SampleCheckouts {
  const sessions = new Map<string, Session>();
  const answers = new Map<string, CheckoutAnswer>();
  const run = (operation: Operation, sessionId: string | undefined, body: JsonObject): CheckoutAnswer => {
    if (operation === 'createCheckoutSession') return created(sessions, siteUrl, body);
    const session = sessions.get(sessionId ?? '');
    if (session === undefined) return refused(404, 'not_found', 'no such session');
    if (operation === 'getCheckoutSession') return answerWith(session);
    if (operation === 'updateCheckoutSession') return updated(session, body);
    if (operation === 'cancelCheckoutSession') return canceled(session);
    return completed(session, body, dedupe);
  };
  return {
    sessions,
    act(operation, sessionId, body, key) {
      if (key === undefined || !dedupe) return run(operation, sessionId, body);
      const name = `${operation} ${sessionId ?? ''} ${key}`;
      const answer = answers.get(name) ?? run(operation, sessionId, body);
      answers.set(name, answer);
      return answer;
    },
  };
}

function created(sessions: Map<string, Session>, siteUrl: string, body: JsonObject): CheckoutAnswer {
  const session: Session = {
    id: `cs_${sessions.size + 1}`,
    siteUrl,
    createdAt: new Date().toISOString(),
    status: 'ready_for_payment',
    currency: text(body['currency']) ?? 'usd',
    items: [],
    buyer: undefined,
    fulfillmentDetails: undefined,
    selected: [],
    interventions: list(member(member(body, 'capabilities'), 'interventions')['supported']).flatMap(
      (name) => text(name) ?? [],
    ),
    messages: [],
    orders: [],
  };
  sessions.set(session.id, session);
  take(session, body);
  return answerWith(session, 201);
}

function updated(session: Session, body: JsonObject): CheckoutAnswer {
  if (isOver(session)) return refused(409, 'conflict', 'the session is over');
  take(session, body);
  return answerWith(session);
}

function canceled(session: Session): CheckoutAnswer {
  if (isOver(session)) return refused(405, 'not_cancelable', 'the session is over');
  session.status = 'canceled';
  session.messages = [];
  return answerWith(session);
}

function completed(session: Session, body: JsonObject, dedupe: boolean): CheckoutAnswer {
  if (session.status === 'canceled' || (session.status === 'completed' && dedupe))
    return refused(409, 'conflict', 'the session is over');
  if (session.status === 'not_ready_for_payment') return refused(409, 'conflict', 'the session is not ready');
  const token = text(member(member(member(body, 'payment_data'), 'instrument'), 'credential')['token']);
  const outcome = text(member(body, 'authentication_result')['outcome']);
  if (session.status === 'authentication_required' && outcome === undefined)
    return refused(400, 'requires_3ds', 'authentication is missing', '$.authentication_result');
  if (token === THREE_DS_TOKEN && outcome === undefined) {
    session.status = 'authentication_required';
    return answerWith(session);
  }
  if (token === DECLINED_TOKEN || (outcome !== undefined && outcome !== 'authenticated')) {
    session.status = 'ready_for_payment';
    session.messages = [problem('payment_declined', 'The payment was declined.')];
    return answerWith(session);
  }
  if (isObject(body['buyer'])) session.buyer = body['buyer'];
  session.status = 'completed';
  session.messages = [];
  session.orders.push(`order_${session.id}_${session.orders.length + 1}`);
  return answerWith(session);
}

/** Applies the cart of a create or an update. */
function take(session: Session, body: JsonObject): void {
  const { line_items: items, buyer, fulfillment_details: details, selected_fulfillment_options: selected } = body;
  if (Array.isArray(items)) session.items = items.flatMap((item: Json) => (isObject(item) ? cartItem(item) : []));
  if (isObject(buyer)) session.buyer = buyer;
  if (isObject(details)) session.fulfillmentDetails = details;
  if (Array.isArray(selected)) session.selected = selected.filter(isObject);
  const soldOut = session.items.findIndex(({ id }) => id.startsWith(SOLD_OUT));
  session.status = soldOut === -1 ? 'ready_for_payment' : 'not_ready_for_payment';
  session.messages =
    soldOut === -1 ? [] : [{ ...problem('out_of_stock', 'Sold out.'), param: `$.line_items[${soldOut}]` }];
}

function cartItem(item: JsonObject): CartItem {
  return { id: text(item['id']) ?? '', quantity: typeof item['quantity'] === 'number' ? item['quantity'] : 1 };
}

function isOver({ status }: Session): boolean {
  return status === 'completed' || status === 'canceled';
}

function answerWith(session: Session, status = 200): CheckoutAnswer {
  return { status, document: documentOf(session) };
}

/** An Error document of the merchant's own; its words must never reach an agent. */
function refused(status: number, code: string, message: string, param?: string): CheckoutAnswer {
  const document = { type: 'invalid_request', code, message: `merchant: ${message}` };
  return { status, document: param === undefined ? document : { ...document, param } };
}

function problem(code: string, content: string): JsonObject {
  return { type: 'error', code, content_type: 'plain', content };
}

function member(of: JsonObject, name: string): JsonObject {
  const value = of[name];
  return isObject(value) ? value : {};
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
