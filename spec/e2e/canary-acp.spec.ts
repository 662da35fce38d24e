import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import http, { type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { JsonObject } from '../../src/json/json.ts';
import {
  type Asked,
  askAcp,
  assertAcpError,
  OTHER_TOKEN,
  rightHeaders,
  SEALED,
  SEALING_KEY,
  SECRET,
  TOKEN,
} from '../adapters/acp/testbed.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import { type CheckoutGateway, startCheckoutGateway } from '../support/acp/gateway.ts';
import type { WorldParts } from '../support/config.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import type { HttpExchange } from '../support/http-server.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { eventually } from '../support/records.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type SpanReceiver, startSpanReceiver } from '../telemetry/span-receiver.ts';
import type { Answered } from './ask.ts';
import { everythingIn, filesIn, found, type Sinks } from './canary-sinks.ts';

/**
 * Secrets of an assistant, its buyer, the gateway and the merchant, which must not come out
 * anywhere.
 */
const CANARIES = {
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
const ECHOED = {
  'an idempotency key': 'canary-idempotency-key-1f20e9',
  "the caller's id of a request": 'canary-request-id-37d4',
  "a buyer's address": 'canary-buyer-61@shop.example',
  'a message of the merchant': 'canary-message-of-the-merchant-7a',
  'the name of a member': 'canary_member_name_e1',
} as const;

/** The secrets that must reach the backend. */
const FOR_THE_MERCHANT = [
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
const FIELDS = {
  signature: CANARIES['a signature'],
  timestamp: CANARIES['a time stamp'],
  cookie: `session=${CANARIES['a cookie']}`,
  'user-agent': CANARIES['a user agent'],
  'x-card': CANARIES['an unknown field'],
  'request-id': ECHOED["the caller's id of a request"],
} as const;

const BUYER = { email: ECHOED["a buyer's address"], first_name: 'Canary' };

const CREATE: JsonObject = {
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

const UPDATE: JsonObject = { buyer: BUYER, order_notes: CANARIES['what an order notes'] };

/** A card wherever the schema admits one: the instrument and the credential are open (acp 3.3). */
const COMPLETE: JsonObject = {
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

const CANCEL: JsonObject = {
  intent_trace: {
    reason_code: 'other',
    trace_summary: CANARIES['why a session is canceled'],
    metadata: { token: CANARIES["a card's token"] },
  },
  note: CANARIES['the number of a card'],
};

/** Writes an answer around the quoted request and a secret of the backend. */
type Quoting = (response: ServerResponse, quoted: string) => void;

const JSON_HEAD = { 'content-type': 'application/json' } as const;

function document(status: number, more: object = {}): Quoting {
  return (response, quoted) => {
    const body = { type: 'invalid_request', code: 'invalid', message: quoted, param: '$', ...more };
    response.writeHead(status, headOf(quoted)).end(JSON.stringify(body));
  };
}

/** Every kind of bad answer that quotes the request, and what the gateway answers its caller. */
const QUOTATIONS: Readonly<Record<string, readonly [quoting: Quoting, status: number, code: string]>> = {
  'a failure': [document(500), 502, 'processing_error'],
  'a refusal': [document(400), 422, 'invalid_request_body'],
  '3D Secure': [document(422, { code: 'requires_3ds' }), 422, 'invalid_request_body'],
  'a redirect': [
    (response, quoted) => void response.writeHead(302, { location: `http://127.0.0.1:1/?${quoted}` }).end(),
    502,
    'processing_error',
  ],
  'another document': [
    (response, quoted) => {
      const body = { [quoted]: quoted, id: quoted, status: quoted, messages: [{ type: quoted, content: quoted }] };
      response.writeHead(200, JSON_HEAD).end(JSON.stringify(body));
    },
    502,
    'processing_error',
  ],
  'no answer of HTTP': [
    (response, quoted) => void response.socket?.end(`HTTP/1.1 ${quoted}\r\n\r\n`),
    502,
    'processing_error',
  ],
  'half an answer': [
    (response, quoted) => {
      response.writeHead(200, { ...JSON_HEAD, 'content-length': 100_000 });
      response.write(quoted, () => response.destroy());
    },
    502,
    'processing_error',
  ],
};

/** Starts the sample backend; after `quote` the next POST gets this answer. */
async function startQuotingMerchant(secret: string): Promise<CheckoutBackend & { quote(quoting: Quoting): void }> {
  let next: Quoting | undefined;
  const backend = await startCheckoutBackend({
    before(exchange) {
      // A good answer has a field of the backend, too.
      exchange.response.setHeader('x-debug', secret);
      if (next === undefined || exchange.request.method !== 'POST') return false;
      const quoting = next;
      next = undefined;
      quoting(exchange.response, `${secret} ${textOf(exchange)}`);
      return true;
    },
  });
  return {
    ...backend,
    quote(quoting) {
      next = quoting;
    },
  };
}

/** A request on one line of ASCII, so that it fits into every field. */
function textOf({ request, body }: HttpExchange): string {
  const whole = `${request.url} ${request.rawHeaders.join(' ')} ${body.toString()}`;
  return whole.replaceAll(/[^\x20-\x7e]/g, '');
}

function headOf(quoted: string): Readonly<Record<string, string>> {
  return { ...JSON_HEAD, 'x-debug': quoted, 'retry-after': quoted, 'www-authenticate': quoted, 'request-id': quoted };
}

/** A gateway with the most verbose output, and an assistant that keeps all answers. */
interface WatchedGateway {
  readonly gateway: CheckoutGateway;
  send(asked: Asked): Promise<Answered>;
  /** A POST that ends with this status, and with this code where it is an error. */
  post(path: string, body: JsonObject, key: string, status: number, code?: string): Promise<Answered>;
  /** Opens a session. @returns its path */
  open(): Promise<string>;
  /** Everything that was answered, heads and bodies. */
  answers(): string;
  /** Ends the gateway. @returns all of its output but answers and calls of the backend */
  end(): Promise<Sinks>;
  /** After `end`, or instead of it. */
  remove(): Promise<void>;
}

/** How long the merchant may take to complete, milliseconds. */
const TIMEOUT_MS = 1_500;

async function startWatchedGateway(
  backend: Awaited<ReturnType<typeof startQuotingMerchant>>,
  { storage, password }: { readonly storage: WorldParts['storage']; readonly password?: string },
): Promise<WatchedGateway> {
  const spans = await startSpanReceiver();
  const gateway = await startCheckoutGateway({
    backendUrl: backend.url,
    storage,
    acp: {
      backend: {
        headers: { 'x-api-key': CANARIES["the merchant's API key"] },
        operations: { completeCheckoutSession: { timeoutMs: TIMEOUT_MS } },
      },
    },
    overrides: {
      server: { adminTokenNext: CANARIES['the next operator token'] },
      ...(password === undefined ? {} : { storage: { ...SEALED, redis: { password } } }),
    },
    env: { LOG_LEVEL: 'trace', OTEL_EXPORTER_OTLP_ENDPOINT: spans.url, OTEL_BSP_SCHEDULE_DELAY: '50' },
  });
  const answers: string[] = [];
  let opened = 0;
  const keyOf = (name: string): string => `${ECHOED['an idempotency key']} ${name}`;

  const send = async ({ headers, ...asked }: Asked): Promise<Answered> => {
    const answer = await askAcp(gateway.url, { ...asked, headers: { ...FIELDS, ...headers } });
    answers.push(`${answer.status} ${JSON.stringify(answer.headers)} ${answer.text}`);
    return answer;
  };
  const post = async (path: string, body: JsonObject, key: string, status: number, code?: string) => {
    const answer = await send({ path, body, headers: { 'idempotency-key': keyOf(key) } });
    if (code === undefined) assert.equal(answer.status, status, answer.text);
    else assertAcpError(answer, status, code);
    return answer;
  };
  return {
    gateway,
    send,
    post,
    async open() {
      opened += 1;
      const { text } = await post('/checkout_sessions', CREATE, `create ${opened}`, 201);
      return `/checkout_sessions/${(JSON.parse(text) as { readonly id: string }).id}`;
    },
    answers: () => answers.join('\n'),
    end: () => outputOf(gateway, spans),
    async remove() {
      await gateway.stop();
      await spans.stop();
    },
  };
}

async function outputOf(gateway: CheckoutGateway, spans: SpanReceiver): Promise<Sinks> {
  const text = async (answer: Promise<Response>): Promise<string> => (await answer).text();
  const published = ['/health', '/ready', '/.well-known/acp.json', '/.well-known/agent-commerce'];
  const read = {
    events: await text(gateway.operator('/api/events?limit=500')),
    receipts: await text(gateway.operator('/api/receipts?limit=500')),
    metrics: await readMetrics(gateway.managementUrl),
    'readiness on the management port': await text(fetch(`${gateway.managementUrl}/ready`)),
    'the published documents': (await Promise.all(published.map((path) => text(fetch(`${gateway.url}${path}`))))).join(
      '\n',
    ),
  };
  // The last lines and spans are written when it ends.
  await gateway.process.stop();
  return { ...read, log: await readFile(gateway.logPath, 'utf8'), traces: spans.bodies.join('\n') };
}

/** Sends calls that the gateway itself refuses, each with a secret in it. */
async function sendRefused(watched: WatchedGateway): Promise<void> {
  const { open, send, post } = watched;
  const path = await open();
  const complete = `${path}/complete`;
  const statusOf = async (asked: Parameters<typeof send>[0]) => (await send(asked)).status;
  const key = { 'idempotency-key': ECHOED['an idempotency key'] };
  const token = `Bearer ${CANARIES['an unknown token']}`;
  assert.equal(await statusOf({ path: complete, headers: { authorization: token }, body: COMPLETE }), 401);
  assert.equal(await statusOf({ path: complete, headers: { 'api-version': token }, body: COMPLETE }), 400);
  assert.equal(await statusOf({ path: complete, headers: { 'content-type': token }, body: COMPLETE }), 415);
  assert.equal(await statusOf({ path: complete, headers: { 'content-encoding': token }, body: COMPLETE }), 415);
  const long = { 'idempotency-key': ECHOED['an idempotency key'].repeat(20) };
  assert.equal(await statusOf({ path: complete, headers: long, body: COMPLETE }), 400);
  assert.equal(await statusOf({ path: `${complete}/${CANARIES["a card's token"]}`, body: COMPLETE }), 404);
  const query = `?token=${CANARIES['a token in a query']}`;
  await send({ path: `${complete}${query}`, headers: key, body: COMPLETE });
  const broken = `{"payment_data":"${CANARIES['a secret in a broken body']}"`;
  assert.equal(await statusOf({ path: complete, headers: key, body: broken }), 400);
  const twice = `{"a":1,"a":"${CANARIES['a secret in a broken body']}"}`;
  assert.equal(await statusOf({ path: complete, headers: key, body: twice }), 400);
  const refused = CANARIES['a secret in a refused body'];
  for (const body of [
    { ...COMPLETE, [ECHOED['the name of a member']]: refused },
    { ...COMPLETE, [refused]: refused },
    { ...COMPLETE, authentication_result: { outcome: refused } },
    { ...COMPLETE, marketing_consents: [{ channel: refused, opted_in: refused }] },
    { ...CREATE, payment_data: refused },
    { payment_data: { handler_id: refused } },
  ])
    await post(complete, body, 'refused', 400, 'invalid_request_body');
  const large = { ...COMPLETE, order_notes: CANARIES['a secret in a refused body'].repeat(12_000) };
  await post(complete, large, 'large', 413, 'request_body_too_large');
  const stranger = `/checkout_sessions/${CANARIES['an unknown session']}`;
  await post(`${stranger}/complete`, COMPLETE, 'stranger', 404, 'checkout_session_not_found');
  assert.equal(await statusOf({ method: 'GET', path: stranger }), 404);
  assert.equal(await statusOf({ method: 'DELETE', path: stranger }), 405);
}

/** Sends a call whose body breaks off. */
async function leaveInTheMiddle(watched: WatchedGateway): Promise<void> {
  const { gateway, open } = watched;
  const path = `/acp${await open()}/complete`;
  const request = http.request(`${gateway.url}${path}`, { method: 'POST', headers: rightHeaders('POST') });
  request.on('error', () => undefined);
  request.write(JSON.stringify(COMPLETE).slice(0, -1));
  const metrics = async () => readMetrics(gateway.managementUrl);
  const come = async () => (/^acg_requests_in_flight 1$/m.test(await metrics()) ? true : undefined);
  await eventually(come, 'the call to come');
  request.destroy();
  await gateway.process.logged(
    ({ resource, outcome }) => resource === 'completeCheckoutSession' && outcome === 'invalid_request',
  );
}

const PASSWORD = CANARIES['the password of Redis'];
const STORES = ['Redis', 'SQLite'] as const;
const ANSWERS = 'what was answered';

describe('card data in checkouts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-canary-acp-'));
  let redis: TestRedis;
  let backend: Awaited<ReturnType<typeof startQuotingMerchant>>;
  let gateways: Readonly<Record<(typeof STORES)[number], WatchedGateway>>;
  before(async () => {
    // What is compressed could not be searched.
    redis = await startRedis({ args: ['--requirepass', PASSWORD, '--rdbcompression', 'no'] });
    backend = await startQuotingMerchant(CANARIES["a secret in the merchant's failure"]);
    gateways = {
      Redis: await startWatchedGateway(backend, { storage: { redis: { url: redis.url } }, password: PASSWORD }),
      SQLite: await startWatchedGateway(backend, { storage: { sqlite: { path: join(folder, 'gateway.db') } } }),
    };
  });
  after(async () => {
    for (const watched of Object.values(gateways ?? {})) await watched.remove();
    await backend?.stop();
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const store of STORES)
    describe(`over ${store}`, () => {
      it('buys, gets the same answer again, and is refused what contradicts it', async () => {
        const { open, post, send } = gateways[store];
        const session = await open();
        await post(session, UPDATE, 'update', 200);
        backend.misbehave({
          kind: 'document',
          edit: (document) => ({
            ...document,
            messages: [
              { type: 'info', content_type: 'plain', content: ECHOED['a message of the merchant'] },
              { type: 'info', content_type: 'plain', content: `card ${'x'.repeat(3_000)}` },
            ],
          }),
        });
        const complete = `${session}/complete`;
        const sold = await post(complete, COMPLETE, 'complete', 200);
        const again = await post(complete, COMPLETE, 'complete', 200);
        assert.equal(again.text, sold.text);
        assert.equal(again.headers['idempotent-replayed'], 'true');
        await post(complete, { ...COMPLETE, order_notes: 'other' }, 'complete', 422, 'idempotency_conflict');
        await post(complete, COMPLETE, 'another', 409, 'checkout_session_conflict');
        await post(`${session}/cancel`, CANCEL, 'too late', 405, 'checkout_session_not_cancelable');
        await post(`${await open()}/cancel`, CANCEL, 'cancel', 200);
        assert.equal((await send({ method: 'GET', path: session })).status, 200);
      });

      for (const [name, [quotation, status, code]] of Object.entries(QUOTATIONS))
        it(`does not come out of a backend that quotes it in ${name}`, async () => {
          const { open, post } = gateways[store];
          const complete = `${await open()}/complete`;
          backend.quote(quotation);
          await post(complete, COMPLETE, name, status, code);
          // A kept answer is repeated; an unknown end is looked up.
          await post(complete, COMPLETE, name, status < 500 ? status : 200);
        });

      it('does not come out of a backend that completes and answers a failure', async () => {
        const { open, post } = gateways[store];
        const path = await open();
        backend.misbehave({ kind: 'hang', acts: true }, { operation: 'completeCheckoutSession' });
        await post(`${path}/complete`, COMPLETE, 'hanging', 504, 'service_unavailable');
        await post(`${path}/complete`, COMPLETE, 'hanging', 200);
        const other = await open();
        backend.misbehave({ kind: 'reset', acts: true }, { operation: 'completeCheckoutSession' });
        await post(`${other}/complete`, COMPLETE, 'reset', 502, 'processing_error');
        await post(`${other}/complete`, COMPLETE, 'reset', 200);
      });

      it('does not come out of any refusal of the gateway', () => sendRefused(gateways[store]));

      it('does not come out of a call that breaks off in its body', () => leaveInTheMiddle(gateways[store]));
    });

  it('does not come out when Redis refuses its clients, before or during a call', async () => {
    const { open, post } = gateways.Redis;
    const complete = `${await open()}/complete`;
    const lose = async (): Promise<void> => {
      await admin.config('SET', 'requirepass', 'another-password');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    };
    const admin = new Redis({ path: redis.socketPath, password: PASSWORD });
    try {
      const { promise, resolve } = Promise.withResolvers<void>();
      backend.misbehave({ kind: 'wait', acts: 'before', until: promise });
      const arrived = backend.arrived();
      const first = post(complete, COMPLETE, 'unstored', 200);
      await arrived;
      await lose();
      resolve();
      await first;
      await post(complete, COMPLETE, 'locked out', 503, 'service_unavailable');
    } finally {
      await admin.config('SET', 'requirepass', PASSWORD);
      admin.disconnect();
    }
  });

  it('is where it is meant to be, and the search finds it there', () => {
    const calls = backend.calls.map(({ rawHeaders, body }) => `${rawHeaders.join(' ')} ${body}`).join('\n');
    for (const name of FOR_THE_MERCHANT)
      assert.notDeepEqual(found({ [name]: CANARIES[name] }, { calls }), [], `the merchant did not get ${name}`);
    const { 'an unknown token': token, 'a cookie': cookie, 'an unknown field': field } = CANARIES;
    const key = ECHOED['an idempotency key'];
    assert.deepEqual(found({ token, cookie, field, key }, { calls }), []);
  });

  it('comes out nowhere', async () => {
    const admin = new Redis({ path: redis.socketPath, password: PASSWORD });
    await admin.save();
    const value = (await everythingIn(redis.socketPath, PASSWORD)).join('\n');
    admin.disconnect();
    assert.match(value, /:acp:/);
    const sinks: Record<string, string> = { 'keys and values in Redis': value };
    const answers: Record<string, string> = {};
    for (const store of STORES) {
      const { answers: answered, end } = gateways[store];
      answers[`${ANSWERS} over ${store}`] = answered();
      // SQLite moves its log into the file when it is closed, so both are read before as well.
      if (store === 'SQLite') Object.assign(sinks, named('open', await filesIn(folder)));
      for (const [name, text] of Object.entries(await end())) sinks[`${name} over ${store}`] = text;
    }
    Object.assign(sinks, named('at rest', await filesIn(dirname(redis.socketPath))));
    Object.assign(sinks, named('at rest', await filesIn(folder)));
    for (const name of ['gateway.db open', 'gateway.db-wal open', 'gateway.db at rest', 'dump.rdb at rest'])
      assert.ok(name in sinks, `${name} is among ${Object.keys(sinks)}`);
    assert.ok(Object.keys(sinks).some((name) => name.includes('.aof')));
    for (const [name, text] of Object.entries(sinks)) assert.ok(text.length > 20, `${name} has something in it`);
    assert.deepEqual(found({ ...CANARIES, ...ECHOED }, sinks), []);
    assert.deepEqual(found(CANARIES, answers), []);
    assert.notDeepEqual(found(ECHOED, answers), []);
  });
});

function named(how: string, files: ReadonlyMap<string, string>): Sinks {
  return Object.fromEntries([...files].map(([name, text]) => [`${name} ${how}`, text]));
}
