/**
 * Example backend: the five checkout operations of ACP 2026-04-17, in memory. It knows nothing of
 * tokens, repetitions by agents or the gateway, except that a POST with an Idempotency-Key it has
 * seen gets the same answer again: that is all a backend has to do.
 *
 * The payment token decides what happens at complete: tok_declined, tok_3ds, or a misbehaviour
 * (once a session, after the order was made): tok_hang, tok_reset, tok_broken, tok_error. Any other
 * token pays. ACP_MISBEHAVE=hang does the same for every token.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const PORT = Number(process.env.PORT || 3000);
const VERSION = '2026-04-17';
/** Names and prices in minor units. */
const GOODS = new Map([
  ['socks', { name: 'Socks', price: 900 }],
  ['scarf', { name: 'Scarf', price: 2500 }],
]);
const SHIPPING = 490;
const TAX_PERCENT = 19;

const sessions = new Map();
const orders = [];
/** Answers by Idempotency-Key. A real backend keeps them for a day at least, beside the orders. */
const answers = new Map();

const MISBEHAVIOURS = {
  hang: () => {},
  reset: (response) => response.socket?.destroy(),
  broken: (response) => send(response, { status: 200, body: { id: 'no session at all' } }),
  error: (response) => send(response, refuse(500, 'out_of_order', 'The payment service failed.')),
};

/** A problem that stands in no session. The gateway passes on none of these words. */
function refuse(status, code, message, param) {
  const type = status < 500 ? 'invalid_request' : 'processing_error';
  return { status, body: { type, code, message, ...(param && { param }) } };
}

function total(type, display_text, amount) {
  return { type, display_text, amount };
}

function lineItem({ id }) {
  const { name, price } = GOODS.get(id) ?? { name: id, price: 0 };
  return {
    id: `line_${id}`,
    item: { id },
    quantity: 1,
    name,
    unit_amount: price,
    totals: [total('total', name, price)],
  };
}

/** A problem that the buyer or the agent can solve: it stands in the session. */
function problem(code, content, param) {
  return { type: 'error', code, content_type: 'plain', content, ...(param && { param }) };
}

/** The lines, the totals and what is still wrong, from what was asked for. */
function price(session, items) {
  const lines = items.map(lineItem);
  const goods = lines.reduce((sum, line) => sum + line.unit_amount, 0);
  const shipping = lines.length > 0 ? SHIPPING : 0;
  const messages = items.flatMap(({ id }, index) =>
    GOODS.has(id) ? [] : [problem('not_found', 'Not for sale here.', `$.line_items[${index}]`)],
  );
  if (items.length === 0) messages.push(problem('missing', 'Nothing is to be bought.', '$.line_items'));
  return Object.assign(session, {
    status: messages.length === 0 ? 'ready_for_payment' : 'not_ready_for_payment',
    line_items: lines,
    totals: [
      total('subtotal', 'Goods', goods),
      total('fulfillment', 'Shipping', shipping),
      total('tax', 'VAT, included', Math.round(((goods + shipping) * TAX_PERCENT) / (100 + TAX_PERCENT))),
      total('total', 'Total', goods + shipping),
    ],
    messages,
  });
}

function create({ currency, line_items, buyer }) {
  const session = {
    id: `cs_${randomUUID()}`,
    protocol: { version: VERSION },
    currency,
    ...(buyer && { buyer }),
    fulfillment_options: [
      { type: 'shipping', id: 'post', title: 'By post', totals: [total('fulfillment', 'Shipping', SHIPPING)] },
    ],
    links: [{ type: 'terms_of_use', url: 'https://socks.example/terms' }],
    capabilities: { interventions: { supported: ['3ds'] } },
  };
  sessions.set(session.id, price(session, line_items));
  return { status: 201, body: session };
}

const isOver = ({ status }) => status === 'completed' || status === 'canceled';

function update(session, { line_items, buyer }) {
  if (isOver(session)) return refuse(409, 'session_closed', 'This session is over.');
  if (buyer) session.buyer = buyer;
  return { status: 200, body: line_items ? price(session, line_items) : session };
}

function complete(session, { payment_data, authentication_result }) {
  if (isOver(session) || session.status === 'not_ready_for_payment')
    return refuse(409, 'not_ready', 'This session cannot be paid now.');
  if (session.status === 'authentication_required' && !authentication_result)
    return refuse(422, 'requires_3ds', 'Authenticate the buyer first.', '$.authentication_result');
  const token = tokenOf(payment_data);
  if (token === 'tok_declined') {
    session.messages = [problem('payment_declined', 'The card was declined.')];
    return { status: 200, body: session };
  }
  if (token === 'tok_3ds' && !authentication_result) return { status: 200, body: askFor3ds(session) };
  const id = `ord_${orders.length + 1}`;
  orders.push({ id, checkout_session_id: session.id });
  delete session.authentication_metadata;
  const order = { id, checkout_session_id: session.id, permalink_url: `https://socks.example/orders/${id}` };
  return { status: 200, body: Object.assign(session, { status: 'completed', messages: [], order }) };
}

function tokenOf(payment_data) {
  return payment_data?.instrument?.credential?.token;
}

function askFor3ds(session) {
  const acquirer_details = {
    acquirer_bin: '412345',
    acquirer_country: 'DE',
    acquirer_merchant_id: '4242',
    merchant_name: 'Socks Shop',
  };
  return Object.assign(session, {
    status: 'authentication_required',
    authentication_metadata: { acquirer_details, directory_server: 'visa', flow_preference: { type: 'frictionless' } },
  });
}

function cancel(session) {
  if (isOver(session)) return refuse(405, 'not_cancelable', 'This session is over.');
  return { status: 200, body: Object.assign(session, { status: 'canceled' }) };
}

function answer(method, path, body) {
  if (method === 'GET' && path === '/orders') return { status: 200, body: orders };
  const [, collection, id, action] = path.split('/');
  if (collection !== 'checkout_sessions') return refuse(404, 'not_found', 'No such page.');
  if (id === undefined) return create(body);
  const session = sessions.get(decodeURIComponent(id));
  if (session === undefined) return refuse(404, 'not_found', 'No such session.');
  if (method === 'GET') return { status: 200, body: session };
  if (action === undefined) return update(session, body);
  return action === 'complete' ? complete(session, body) : cancel(session);
}

/** Answers are kept as text, because their session changes later. */
function answerOnce(key, method, path, body) {
  if (key === undefined) return answer(method, path, body);
  const kept = answers.get(key) ?? JSON.stringify(answer(method, path, body));
  answers.set(key, kept);
  return JSON.parse(kept);
}

function send(response, { status, body }) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const misbehaved = new Set();

function misbehaviourOf(url, body) {
  if (!url.endsWith('/complete') || misbehaved.has(url)) return undefined;
  return MISBEHAVIOURS[process.env.ACP_MISBEHAVE ?? String(tokenOf(body.payment_data)).replace('tok_', '')];
}

async function serve(request, response) {
  const chunks = await request.toArray();
  const body = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
  const { method, url, headers } = request;
  const given = answerOnce(headers['idempotency-key'], method, url, body);
  const misbehave = given.body.order && misbehaviourOf(url, body);
  if (misbehave === undefined) return send(response, given);
  misbehaved.add(url);
  misbehave(response);
}

createServer((request, response) => {
  serve(request, response).catch(() => send(response, refuse(400, 'unreadable', 'This request cannot be read.')));
}).listen(PORT, '127.0.0.1');
