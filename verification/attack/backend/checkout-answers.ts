/** Hostile answers of a checkout backend. */

import type { JsonObject } from '../../../src/json/types.ts';
import { HOSTILE_ANSWERS } from './answers.ts';
import { CANARY } from './hostile-answer.ts';
import type { Action } from './stage.ts';

/** An answer to a checkout call that must not reach an agent unchanged. */
export interface CheckoutLeak {
  readonly name: string;
  readonly action: Action;
  /** The statuses that the agent may get instead. */
  readonly statuses: readonly number[];
}

/** A fault of the backend, or a timeout. */
const FAILED = [502, 504];

const answer = (status: string, body: string, type = 'application/json', more = ''): string =>
  `HTTP/1.1 ${status} ${CANARY}\r\ncontent-type: ${type}\r\n${more}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const HEADERS = [
  `set-cookie: session=${CANARY}`,
  `request-id: ${CANARY}`,
  `idempotency-key: ${CANARY}`,
  'idempotent-replayed: true',
  `www-authenticate: Bearer realm="${CANARY}"`,
  `retry-after: 31536000`,
  `location: http://${CANARY}.internal/`,
  '',
].join('\r\n');

/** An empty session. */
const session = (more: JsonObject = {}): JsonObject => ({
  id: 'cs_1',
  status: 'ready_for_payment',
  currency: 'usd',
  line_items: [],
  totals: [],
  fulfillment_options: [],
  messages: [],
  links: [],
  capabilities: {},
  ...more,
});
/** An Error document, valid by the schema, with secrets in every text. */
const error = (code: string): string =>
  JSON.stringify({ type: 'invalid_request', code, message: CANARY, param: `$.${CANARY.replace('-', '_')}` });

/** An answer that is right but for its headers. */
export const RIGHT = answer('200', JSON.stringify(session()), 'application/json', HEADERS);

const leak = (name: string, action: Action, ...statuses: readonly number[]): CheckoutLeak => ({
  name,
  action,
  statuses,
});
const document = (name: string, more: JsonObject): CheckoutLeak =>
  leak(`a session with ${name}`, answer('200', JSON.stringify(session(more))), 502);

const OWN: readonly CheckoutLeak[] = [
  leak('a page', answer('200', `<!doctype html><h1>${CANARY}</h1>`, 'text/html'), 502),
  leak('a page that says it is JSON', answer('200', `<!doctype html><h1>${CANARY}</h1>`), 502),
  leak('a session that says it is a page', answer('200', JSON.stringify(session()), 'text/html'), 502),
  document('a member too many', { debug: CANARY }),
  document('a member whose name is the secret', { [CANARY]: 1 }),
  document('a name that would break a line of the log', { [`\n{"level":60,"msg":"${CANARY}"}`]: 1 }),
  document('a status of its own', { status: CANARY }),
  document('a wrong type for a secret', { currency: [CANARY] }),
  document('Markdown that is a script', {
    messages: [{ type: 'info', content_type: 'markdown', content: `<script>${CANARY}</script>` }],
  }),
  leak('a session twice in one', answer('200', `{"status":"${CANARY}",${JSON.stringify(session()).slice(1)}`), 502),
  leak('its errors with a session’s status', answer('200', error('requires_3ds')), 502),
  ...[400, 422].map((status) =>
    leak(`${status} with words`, answer(`${status}`, error(CANARY), undefined, HEADERS), 422),
  ),
  ...[400, 422].map((status) => leak(`${status} requires_3ds`, answer(`${status}`, error('requires_3ds')), 422)),
  // A cancel that is not possible any more is no fault of the backend.
  leak('405 with words', answer('405', error(CANARY), undefined, HEADERS), 502, 405),
  ...[404, 409].map((status) =>
    leak(`${status} with words`, answer(`${status}`, error(CANARY), undefined, HEADERS), status),
  ),
  ...[401, 402, 403, 410, 418, 429, 500, 503].map((status) =>
    leak(`${status} with words`, answer(`${status}`, error(CANARY), undefined, HEADERS), 502),
  ),
  ...[301, 302, 307, 308].map((status) =>
    leak(`${status} to elsewhere`, answer(`${status}`, CANARY, 'text/plain', HEADERS), 502),
  ),
];

/** The hostile answers of every channel, and those of checkouts only. */
export const CHECKOUT_LEAKS: readonly CheckoutLeak[] = [
  ...HOSTILE_ANSWERS.map(({ name, action }) => ({ name, action, statuses: FAILED })),
  ...OWN,
];
