import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { before, describe, it } from 'node:test';
import express, { type ErrorRequestHandler } from 'express';
import request from 'supertest';
import { acpAdapter, clientsByToken } from '../../../src/adapters/acp/adapter.ts';
import { AcpError } from '../../../src/adapters/acp/error.ts';
import { Slots } from '../../../src/server/limits/load-shedding.ts';
import { MAX_FAILED_ATTEMPTS } from '../../../src/server/limits/rates.ts';
import { closeOf, dial, exchange, head, received } from '../../server/http/raw.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { eventually } from '../../support/records.ts';
import {
  type Asked,
  askAcp,
  assertAcpError,
  CART,
  type CheckoutTestbed,
  createHead,
  type Headers,
  OTHER_TOKEN,
  openCheckoutTestbed,
  rawCreate,
  refusalIn,
  rightHeaders,
  sharedCheckoutTestbed,
  TOKEN,
} from './testbed.ts';

/** Delays the backend's next answer until the result is called, once the call has arrived. */
async function delayAnswer({ backend, gateway }: CheckoutTestbed) {
  const { promise, resolve } = Promise.withResolvers<void>();
  backend.misbehave({ kind: 'wait', acts: 'after', until: promise });
  const arrived = backend.arrived();
  const first = askAcp(gateway.url);
  await arrived;
  return async () => {
    resolve();
    assert.equal((await first).status, 201);
  };
}

/** One byte too many, no JSON, and nothing that a schema allows. */
const TOO_LARGE = '{'.repeat(262_145);

/** Everything that can be wrong, in the order of acp 13.1: each row makes one more thing right. */
const ROWS: readonly (readonly [what: string, status: number, code: string, asked: Asked])[] = [
  ['the route', 404, 'not_found', { method: 'PUT', path: '/carts' }],
  ['the method', 405, 'method_not_allowed', { method: 'PUT' }],
  ['the bearer token', 401, 'unauthorized', {}],
  ['the version', 400, 'unsupported_api_version', { headers: { authorization: undefined } }],
  ['the key', 400, 'idempotency_key_invalid', { headers: { 'api-version': undefined } }],
  ['the media type', 415, 'unsupported_media_type', { headers: { 'idempotency-key': undefined } }],
  ['the load', 503, 'service_unavailable', { headers: { 'content-type': undefined } }],
];

const WRONG: Readonly<Record<string, string>> = {
  authorization: 'Bearer wrong',
  'api-version': '2025-09-29',
  'idempotency-key': 'with\ttab',
  'content-type': 'text/plain',
};

/** The request of a row: wrong in this and in all later checks. */
function wrongFrom(row: number): Asked {
  const put = Object.assign({}, ...ROWS.slice(0, row + 1).map(([, , , { headers = {} }]) => headers)) as object;
  const [, , , { method = 'POST', path = '/checkout_sessions' }] = ROWS[row] ?? ROWS[0] ?? assert.fail();
  const headers = Object.fromEntries(Object.entries(WRONG).filter(([name]) => !Object.keys(put).includes(name)));
  return { method, path, headers, body: TOO_LARGE };
}

describe('the order of the checks of a checkout call', () => {
  const open = sharedCheckoutTestbed({ acp: { limits: { maxInFlight: 1 } } });
  let release: () => Promise<void>;
  before(async () => {
    // The one slot is taken: later checks must not be reached.
    release = await delayAnswer(open);
  });

  for (const [row, [what, status, code]] of ROWS.entries())
    it(`${what} is checked before everything that follows`, async () => {
      assertAcpError(await askAcp(open.gateway.url, wrongFrom(row)), status, code);
    });

  it('the size is checked before the JSON, the JSON before the schema, and the schema before the key is claimed', async () => {
    await release();
    const headers = { 'idempotency-key': 'one-key' };
    const ask = (body: string | typeof CART) => askAcp(open.gateway.url, { headers, body });
    assertAcpError(await ask(TOO_LARGE), 413, 'request_body_too_large');
    assertAcpError(await ask('{"currency":7'), 400, 'invalid_json');
    assertAcpError(await ask('{"currency":7}'), 400, 'invalid_request_body');
    assert.equal((await ask(CART)).status, 201, 'refused calls do not use the key');
    assertAcpError(await ask('{"currency":7}'), 400, 'invalid_request_body');
    assertAcpError(await ask(JSON.stringify({ ...CART, currency: 'eur' })), 422, 'idempotency_conflict');
  });
});

describe('the connection of a refused checkout call', () => {
  const open = sharedCheckoutTestbed();

  const create = (body: string, changes: Headers = {}): string => {
    const length = String(Buffer.byteLength(body));
    const headers = { host: 'shop', ...rightHeaders('POST', { 'content-length': length, ...changes }) };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    return `${head(['POST /acp/checkout_sessions HTTP/1.1', ...lines])}${body}`;
  };
  const last = create(JSON.stringify(CART), { connection: 'close' });
  const statuses = async (...requests: readonly string[]): Promise<readonly string[]> => {
    open.backend.forget();
    const answer = await exchange(open.gateway.url, [requests.join('')]);
    return [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = '']) => status);
  };

  const unread: Readonly<Record<string, Headers>> = {
    'the token': { authorization: undefined },
    'the media type': { 'content-type': 'text/plain' },
  };
  for (const [what, changes] of Object.entries(unread))
    it(`ends where ${what} is wrong: a body that was not read is no next call`, async () => {
      open.backend.forget();
      const socket = await dial(open.gateway.url);
      const answer = received(socket);
      socket.write(create(last, changes).slice(0, -last.length));
      await once(socket, 'data');
      socket.write(last);
      await closeOf(socket);
      assert.match(answer(), /^HTTP\/1\.1 4\d\d /);
      assert.equal(answer().match(/HTTP\/1\.1 /g)?.length, 1);
      assert.equal(open.backend.calls.length, 0);
    });

  it('stays where the body was read or there is none, and the next call is served', async () => {
    assert.deepEqual(await statuses(create('{'), create('{}'), last), ['400', '400', '201']);
    assert.equal(open.backend.calls.length, 1);
    assert.deepEqual(await statuses(create('', { authorization: undefined }), last), ['401', '201']);
  });
});

describe('the bearer token of a checkout call', () => {
  // Each test has an address of its own: wrong tokens are counted.
  const open = sharedCheckoutTestbed({ overrides: { server: { trustProxy: 1 } } });
  let addresses = 0;
  const newAddress = (): string => {
    addresses += 1;
    return `203.0.113.${addresses}`;
  };
  const create = (authorization: string | undefined, address = newAddress(), asked: Asked = {}) =>
    askAcp(open.gateway.url, { ...asked, headers: { 'x-forwarded-for': address, authorization } });

  it('lets a known client in, in any spelling of the scheme', async () => {
    for (const right of [`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER ${TOKEN}`, `Bearer ${OTHER_TOKEN}`])
      assert.equal((await create(right)).status, 201, right);
  });

  it('is refused when it is missing, wrong, or in another form', async () => {
    const refused = [
      ...[undefined, '', 'Bearer', `Bearer  ${TOKEN}`, `Bearer\t${TOKEN}`, `Bearer ${TOKEN} ${TOKEN}`],
      ...[`Bearer ${TOKEN}, Bearer ${TOKEN}`, `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(0, -1)}`, TOKEN],
      ...[`Bearer ${'x'.repeat(513)}`, `Basic ${TOKEN}`, `Bearer ${TOKEN.toUpperCase()}`],
    ];
    for (const wrong of refused) {
      const answer = await create(wrong);
      assertAcpError(answer, 401, 'unauthorized');
      assert.equal(answer.headers['www-authenticate'], 'Bearer realm="acp"');
    }
  });

  it('is not taken from the query, and is needed for reading as well', async () => {
    for (const asked of [
      { path: `/checkout_sessions?access_token=${TOKEN}` },
      { method: 'GET', path: '/checkout_sessions/cs_1' },
    ])
      assertAcpError(await create(undefined, newAddress(), asked), 401, 'unauthorized');
  });

  it('is guessed ten times a minute from one address, then refused; a right one never is', async () => {
    const address = newAddress();
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1)
      assertAcpError(await create(`Bearer guess-${tries}`, address), 401, 'unauthorized');
    for (const asked of [{}, { method: 'GET', path: '/checkout_sessions/cs_1' }]) {
      const answer = await create('Bearer guess', address, asked);
      assertAcpError(answer, 429, 'rate_limited');
      assert.match(answer.headers['retry-after'] ?? '', /^(?:[1-9]|[1-5]\d|60)$/);
      assert.equal(answer.headers['www-authenticate'], undefined);
    }
    assert.equal((await create(`Bearer ${TOKEN}`, address)).status, 201, 'the right token from the same address');
    assertAcpError(await create(undefined, address), 401, 'unauthorized');
    assertAcpError(await create('Bearer guess'), 401, 'unauthorized');
    const metrics = await readMetrics(open.gateway.managementUrl);
    assert.match(metrics, /^acg_rate_limited_total\{what="acp_token"\} 2$/m);
  });

  it('must come once: two are refused, even when one of them is right', async () => {
    for (const [one, other] of [
      [TOKEN, TOKEN],
      [TOKEN, 'wrong'],
      ['wrong', TOKEN],
    ]) {
      const answer = await rawCreate(open.gateway.url, [
        `X-Forwarded-For: ${newAddress()}`,
        `Authorization: Bearer ${one}`,
        `AUTHORIZATION: Bearer ${other}`,
      ]);
      assert.deepEqual(refusalIn(answer), { status: 401, code: 'unauthorized' });
      assert.match(answer, /\r\nwww-authenticate: Bearer realm="acp"\r\n/);
    }
  });

  it('names its client, which may have several, so that one can follow another', () => {
    const clientOf = clientsByToken([
      { id: 'one', tokens: ['token-1-old', 'token-1-new'] },
      { id: 'two', tokens: ['token-2'] },
    ]);
    const asking = (token: string) => {
      const value = `Bearer ${token}`;
      const request = { headers: { authorization: value }, rawHeaders: ['Authorization', value], socket: {} };
      return clientOf(request as unknown as IncomingMessage);
    };
    assert.deepEqual(['token-1-old', 'token-1-new', 'token-2'].map(asking), ['one', 'one', 'two']);
    for (const token of ['token-1', 'token-3', 'one']) assert.throws(() => asking(token), AcpError);
  });
});

describe('checkout calls beyond their limit', () => {
  const metric = async ({ gateway }: CheckoutTestbed, line: string): Promise<number> => {
    const lines = (await readMetrics(gateway.managementUrl)).split('\n');
    return Number(lines.find((candidate) => candidate.startsWith(`${line} `))?.slice(line.length) ?? 0);
  };
  const limited = sharedCheckoutTestbed({ acp: { limits: { maxInFlight: 1 } } });

  it('are answered with Retry-After, a GET as well, and leave no claim behind', async () => {
    const release = await delayAnswer(limited);
    const headers = { 'idempotency-key': 'refused', 'request-id': 'r-1' };
    for (const asked of [{ headers }, { method: 'GET', path: '/checkout_sessions/cs_1', headers }]) {
      const busy = await askAcp(limited.gateway.url, asked);
      assertAcpError(busy, 503, 'service_unavailable');
      assert.equal(busy.headers['retry-after'], '1');
      assert.equal(busy.headers['request-id'], 'r-1');
    }
    assert.equal(await metric(limited, 'acg_shed_total{reason="in_flight"}'), 2);
    await release();
    const again = await askAcp(limited.gateway.url, { headers, body: { ...CART, currency: 'eur' } });
    assert.equal(again.status, 201, again.text);
  });

  it('are counted until their work is done, also when the caller has left', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    limited.backend.misbehave({ kind: 'wait', acts: 'after', until: promise });
    const arrived = limited.backend.arrived();
    const leaving = http.request(`${limited.gateway.url}/acp/checkout_sessions`, {
      method: 'POST',
      headers: rightHeaders('POST'),
    });
    leaving.on('error', () => undefined);
    leaving.end(JSON.stringify(CART));
    await arrived;
    leaving.destroy();
    const gone = async () => ((await metric(limited, 'acg_requests_in_flight')) === 0 ? true : undefined);
    await eventually(gone, 'the caller to be gone');
    assertAcpError(await askAcp(limited.gateway.url), 503, 'service_unavailable');
    const sessions = limited.backend.calls.length;
    resolve();
    const served = async () => ((await askAcp(limited.gateway.url)).status === 201 ? true : undefined);
    await eventually(served, 'a free slot');
    assert.ok(limited.backend.session(`cs_${sessions + 1}`), 'the call of the caller that left came to its end');
  });

  it('are counted until their connection is done, also when their work ends first', async () => {
    const slots = [new Slots(1), new Slots(2)];
    const held = () => slots.map((each) => each.inFlight());
    const parts = {
      ...{ mountPath: '/acp', entrance: [], guesses: {}, slots, fence: { up: () => false } },
      settings: { clients: [{ id: 'assistant', tokens: [TOKEN] }] },
      gate: { accepting: () => true, begin: () => () => undefined },
      shedding: () => undefined,
      entered(step: string) {
        if (step === 'validate') throw new Error('the work ends');
      },
    };
    const app = express().use(acpAdapter(parts as unknown as Parameters<typeof acpAdapter>[0]));
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const answer: ErrorRequestHandler = (_error, _req, res, _next) =>
      void res.once('close', resolve).status(500).json(held());
    const { body } = await request(app.use(answer)).get('/acp/checkout_sessions/cs_1').set(rightHeaders('GET'));
    await closed;
    assert.deepEqual(
      [body, held()],
      [
        [1, 1],
        [0, 0],
      ],
    );
  });

  it('are refused when the whole gateway is full, after their token is compared', async () => {
    const open = await openCheckoutTestbed({ overrides: { limits: { maxInFlight: 1 } } });
    try {
      const release = await delayAnswer(open);
      const wrong = { headers: { authorization: undefined } };
      assertAcpError(await askAcp(open.gateway.url), 503, 'service_unavailable');
      assertAcpError(await askAcp(open.gateway.url, wrong), 401, 'unauthorized');
      await release();
    } finally {
      await open.close();
    }
  });

  it('are refused once the gateway stops to accept calls', async () => {
    const open = await openCheckoutTestbed();
    try {
      const release = await delayAnswer(open);
      const socket = await dial(open.gateway.url);
      const answer = received(socket);
      const late = createHead([`Content-Length: ${JSON.stringify(CART).length}`]);
      socket.write(late.slice(0, 20));
      const drained = open.gateway.drain(60_000);
      while (open.gateway.state() !== 'closed') await new Promise(setImmediate);
      socket.write(`${late.slice(20)}${JSON.stringify(CART)}`);
      await closeOf(socket);
      assert.deepEqual(refusalIn(answer()), { status: 503, code: 'service_unavailable' });
      await release();
      await drained;
    } finally {
      await open.close();
    }
  });
});

const PAYMENT = {
  payment_data: { handler_id: 'card', instrument: { type: 'card', credential: { type: 'spt', token: 'spt_1' } } },
};

describe('the answer to a checkout call', () => {
  const open = sharedCheckoutTestbed();
  const ask = (key: string, path = '/checkout_sessions', body: object = CART) =>
    askAcp(open.gateway.url, { path, body: JSON.stringify(body), headers: { 'idempotency-key': key } });
  const session = async (): Promise<string> =>
    `/checkout_sessions/${(JSON.parse((await ask(crypto.randomUUID())).text) as { id: string }).id}`;
  const lineOf = (id: unknown): Promise<Record<string, unknown>> =>
    eventually(async () => {
      const lines = open.gateway.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
      return lines.find(({ requestId, msg }) => requestId === id && msg === 'request completed');
    }, 'the line of the request');

  it('is marked when it is repeated, in the log as well', async () => {
    const first = await ask('again');
    const second = await ask('again');
    assert.deepEqual([second.status, second.text], [first.status, first.text]);
    assert.equal(first.headers['idempotent-replayed'], undefined);
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.equal((await lineOf(second.headers['x-request-id']))['outcome'], 'replayed');
  });

  it('is a refusal again when the first one was, under its own code in the log', async () => {
    const path = `${await session()}/complete`;
    const gone = { type: 'invalid_request', code: 'gone', message: 'no such session' };
    open.backend.misbehave({ kind: 'status', status: 404, acts: false, document: gone });
    const [first, second] = [await ask('lost', path, PAYMENT), await ask('lost', path, PAYMENT)];
    assertAcpError(first, 404, 'checkout_session_not_found');
    assertAcpError(second, 404, 'checkout_session_not_found');
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.equal((await lineOf(second.headers['x-request-id']))['outcome'], 'checkout_session_not_found');
  });

  it('comes later while the first call runs, and for another key of the session as well', async () => {
    const path = `${await session()}/complete`;
    const { promise, resolve } = Promise.withResolvers<void>();
    open.backend.misbehave({ kind: 'wait', acts: 'after', until: promise }, { operation: 'completeCheckoutSession' });
    const arrived = open.backend.arrived({ operation: 'completeCheckoutSession' });
    const first = ask('running-key', path, PAYMENT);
    await arrived;
    const same = await ask('running-key', path, PAYMENT);
    assertAcpError(same, 409, 'idempotency_in_flight');
    const other = await ask('other', path, PAYMENT);
    assertAcpError(other, 409, 'checkout_session_conflict');
    for (const { headers } of [same, other]) assert.match(String(headers['retry-after']), /^[1-9]\d*$/);
    resolve();
    assert.equal((await first).status, 200);
  });

  it('has no header of the backend', async () => {
    const known = [
      ...['x-request-id', 'idempotency-key', 'cache-control', 'content-type', 'content-length'],
      ...['x-content-type-options', 'date', 'connection'],
    ];
    const { headers } = await ask('headers');
    assert.deepEqual(
      Object.keys(headers).filter((name) => !known.includes(name)),
      [],
    );
  });

  it('is in log and metrics with its operation and its outcome, and neither session, key nor token', async () => {
    const path = `${await session()}?access_token=never`;
    const answer = await askAcp(open.gateway.url, { method: 'GET', path, headers: {} });
    const line = await lineOf(answer.headers['x-request-id']);
    assert.deepEqual(
      [line['path'], line['channel'], line['resource'], line['outcome']],
      ['/acp/checkout_sessions/*', 'acp', 'getCheckoutSession', 'delivered'],
    );
    const metrics = await readMetrics(open.gateway.managementUrl);
    assert.match(metrics, /acg_calls_total\{resource="getCheckoutSession",channel="acp",outcome="delivered"\} [1-9]/);
    for (const secret of ['cs_', 'access_token', 'running-key', TOKEN])
      assert.ok(!open.gateway.logLines.join('').includes(secret) && !metrics.includes(secret), secret);
  });

  it('has a resource in the log only once the caller is known', async () => {
    const answer = await askAcp(open.gateway.url, { headers: { authorization: undefined } });
    const line = await lineOf(answer.headers['x-request-id']);
    assert.deepEqual([line['channel'], line['resource'], line['outcome']], ['acp', undefined, 'unauthorized']);
  });
});
