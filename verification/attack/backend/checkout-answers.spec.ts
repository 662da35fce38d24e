import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import {
  askAcp,
  assertAcpError,
  type CheckoutTestbed,
  openCheckoutTestbed,
} from '../../../spec/adapters/acp/testbed.ts';
import { type RawBackend, rawBackend } from '../../../spec/backend/raw-backend.ts';
import type { Answered } from '../../../spec/e2e/ask.ts';
import { readMetrics } from '../../../spec/support/read-metrics.ts';
import { OPERATIONS } from '../../../src/checkouts/operations.ts';
import type { JsonObject } from '../../../src/json/types.ts';
import { attack, proven } from '../catalogue.ts';
import { HOSTILE_ANSWERS } from './answers.spec.ts';
import { type Action, CANARY } from './stage.ts';

/** Short, so that a slow backend delays no test. Milliseconds. */
const TIMEOUT_MS = 500;
/** All headers that an answer to an agent can have. */
const NAMES: ReadonlySet<string> = new Set([
  'x-content-type-options',
  'x-request-id',
  'request-id',
  'idempotency-key',
  'idempotent-replayed',
  'cache-control',
  'content-type',
  'content-length',
  'retry-after',
  'date',
  'connection',
  'keep-alive',
]);
/** The operations on a session that the backend answers with 200. */
const CALLS = [
  { name: 'read', method: 'GET', path: '' },
  { name: 'update', method: 'POST', path: '', body: '{}' },
  { name: 'complete', method: 'POST', path: '/complete', body: '{"payment_data":{"purchase_order_number":"1"}}' },
  { name: 'cancel', method: 'POST', path: '/cancel', body: '{}' },
] as const;

/** An answer to a checkout call that must not reach an agent unchanged. */
interface CheckoutLeak {
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
const RIGHT = answer('200', JSON.stringify(session()), 'application/json', HEADERS);

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
const CHECKOUT_LEAKS: readonly CheckoutLeak[] = [
  ...HOSTILE_ANSWERS.map(({ name, action }) => ({ name, action, statuses: FAILED })),
  ...OWN,
];

describe('a checkout backend that leaks', () => {
  let backend: RawBackend;
  let open: CheckoutTestbed;
  let action: Action = RIGHT;
  before(async () => {
    backend = await rawBackend((socket, request) => {
      if (typeof action === 'string') socket.write(action, 'latin1');
      else action(socket, request);
    });
    const operations = Object.fromEntries(OPERATIONS.map((operation) => [operation, { timeoutMs: TIMEOUT_MS }]));
    open = await openCheckoutTestbed({
      acp: { backend: { baseUrl: backend.origin, operations, scopesByClient: true } },
    });
  });
  after(async () => {
    await open.gateway.close();
    await open.backend.stop();
    await backend.close();
  });

  const callAll = (key: string): Promise<readonly Answered[]> =>
    Promise.all(
      CALLS.map(({ name, path, ...asked }) =>
        askAcp(open.gateway.url, {
          ...asked,
          // Each on a session of its own: complete and cancel exclude each other.
          path: `/checkout_sessions/${encodeURIComponent(`${key} ${name}`)}${path}`,
          headers: { 'request-id': 'mine', ...(asked.method === 'POST' ? { 'idempotency-key': 'key' } : {}) },
        }),
      ),
    );

  for (const [at, leak] of CHECKOUT_LEAKS.entries())
    attack(
      'A7',
      `${leak.name}: ${leak.statuses.join(' or ')} in a text of the gateway, for every operation`,
      async () => {
        action = leak.action;
        const answers = await callAll(`leak ${at}`);
        for (const answer of answers) {
          closed(answer);
          assert.ok(leak.statuses.includes(answer.status), `${answer.status} ${answer.text}`);
          assertAcpError(answer, answer.status, codeOf(answer));
        }
        // The kept refusal has only texts of the gateway as well.
        action = RIGHT;
        for (const [nth, again] of (await callAll(`leak ${at}`)).entries()) {
          closed(again);
          if (again.headers['idempotent-replayed'] === 'true') assert.equal(again.text, answers[nth]?.text);
        }
      },
    );

  attack(['A7', 'H6'], 'its headers beside a right answer do not reach the agent', async () => {
    action = RIGHT;
    for (const answer of await callAll('right')) {
      closed(answer);
      assert.equal(answer.status, 200);
      assert.deepEqual([answer.headers['request-id'], answer.headers['retry-after']], ['mine', undefined]);
      assert.equal(answer.headers['idempotent-replayed'], undefined);
    }
  });

  attack(['A7', 'O7'], 'no canary is in the log, the metrics, the events or the receipts', async () => {
    const metrics = await readMetrics(open.gateway.managementUrl);
    const [events, receipts] = await Promise.all(
      ['/api/events', '/api/receipts'].map(async (path) => (await open.gateway.operator(path)).text()),
    );
    const sinks = { log: open.gateway.logLines.join(''), metrics, events, receipts };
    for (const [sink, text = ''] of Object.entries(sinks)) {
      assert.ok(text.length > 0, sink);
      assert.ok(
        !text.includes(CANARY),
        `${sink}: ${text.slice(Math.max(0, text.indexOf(CANARY) - 200))}`.slice(0, 400),
      );
    }
    assert.match(metrics, /acg_checkout_invalid_documents_total\{operation="updateCheckoutSession",pointer="\$"\}/);
  });

  proven(
    'A7',
    'spec/adapters/acp/outcome.spec.ts',
    'requires_3ds is passed on, with its path and without the backend’s message',
  );
  proven(['A7', 'P2'], 'spec/adapters/acp/outcome.spec.ts', 'a redirect is not followed: its target gets no request');
  proven(
    'A7',
    'spec/adapters/acp/backend-document.spec.ts',
    'matches the schema, and the fault names the path and the keyword, never a value',
  );
});

/** Fails when a header is not on the list or any part holds the canary. */
function closed({ headers, text }: Answered): void {
  assert.ok(!`${JSON.stringify(headers)}${text}`.includes(CANARY), text);
  assert.deepEqual(
    Object.keys(headers).filter((name) => !NAMES.has(name)),
    [],
  );
}

function codeOf({ text }: Answered): string {
  return (JSON.parse(text) as { readonly code: string }).code;
}
