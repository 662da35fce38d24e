import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { type BackendConnection, createExchange } from '../../../src/backend/backend-connection.ts';
import type { BackendRequest, HeldConnection } from '../../../src/backend/backend-exchange.ts';
import { type Deliverable, fetchAnswer, fetchForBuyer } from '../../../src/payments/delivery/fetch-answer.ts';
import { MAX_KEPT_BYTES } from '../../../src/payments/ledger/ledger.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { backendIdempotencyKey, type PaymentContext, storedRequest } from '../../../src/payments/settlement/terms.ts';
import { type HttpExchange, type HttpServer, serveHttp } from '../../support/http-server.ts';
import { type SampleBackend, startSampleBackend } from '../../support/sample-backend.ts';
import { freshTerms, worldOfEachTest } from '../settlement/world.ts';

const RESOURCE: Deliverable = {
  path: '/report',
  repeatable: true,
  timeoutMs: 2_000,
  maxResponseBytes: 10_485_760,
  relayStatuses: { sold: [404], unpaid: [409] },
  headers: { 'x-api-key': 'configured now' },
};

describe('a call that is finished without its buyer', () => {
  const world = worldOfEachTest();
  const { pay, recorder, journal, record, receipts, types } = world;
  let merchant: SampleBackend;
  let backend: BackendConnection;
  before(async () => {
    merchant = await startSampleBackend();
  });
  beforeEach(() => {
    backend = createExchange({ origin: merchant.url });
  });
  afterEach(() => backend.abort());
  after(() => merchant.stop());

  const bought = async (path: string, more: Partial<BackendRequest> = {}): Promise<Paid> => {
    const request = {
      method: 'GET',
      path,
      headers: { 'x-api-key': 'configured then' },
      body: undefined,
      ...more,
    } as const;
    world.terms = { ...freshTerms(), backendRequest: storedRequest(request) };
    // Its money moved in an earlier attempt, which holds no connection any more.
    return { ...(await pay()), held: undefined };
  };
  const fetchIt = async (paid: Paid, resource: Deliverable = RESOURCE): Promise<void> => {
    merchant.forget();
    const contextOf: PaymentContext = ({ receiptId }, requestId) => `${receiptId} ${requestId}`;
    await fetchForBuyer(paid, resource, journal(), backend.exchange, recorder(), contextOf);
  };
  const outcome = async (): Promise<unknown> => {
    const { state, reason } = (await record()) ?? {};
    const [receipt] = await receipts();
    return { state, reason, metadata: receipt?.metadata, status: receipt?.backendStatus };
  };

  it('the answer is kept byte for byte with the headers that may be relayed', async () => {
    await fetchIt(await bought('/noisy'));
    const kept = await world.ledger.kept(world.terms.payId);
    assert.equal(Buffer.from(kept?.body ?? []).toString(), '{"noisy":true}');
    assert.equal(kept?.status, 200);
    assert.equal(kept?.headers['content-disposition'], 'inline; filename="noisy.json"');
    for (const name of ['set-cookie', 'x-internal', 'payment-response', 'server'])
      assert.equal(kept?.headers[name], undefined);
    assert.deepEqual(await outcome(), {
      state: 'undelivered',
      reason: 'answer_kept',
      metadata: { callId: world.terms.callId, answerKept: true },
      status: 200,
    });
    assert.equal((await types()).at(-1), 'backend.called');
  });

  it('asks with the headers that its caller paid for', async () => {
    await fetchIt(await bought('/noisy', { callerHeaders: { cookie: 'session=1', 'x-api-key': 'of the caller' } }));
    const [request] = merchant.requests;
    assert.deepEqual([request?.headers.cookie, request?.headers['x-api-key']], ['session=1', 'configured now']);
  });

  it('travels on the connection that was held while its money moved, and gives it back when the request cannot be read', async () => {
    const paid = await bought('/noisy');
    const away = createExchange({ origin: 'http://127.0.0.1:9' });
    const used: string[] = [];
    const held: HeldConnection = {
      exchange(request, limits) {
        used.push('exchange');
        return backend.exchange(request, limits);
      },
      release: () => void used.push('release'),
    };
    await fetchForBuyer({ ...paid, held }, RESOURCE, journal(), away.exchange, recorder());
    assert.equal((await world.ledger.kept(world.terms.payId))?.status, 200);
    const sealed = await bought('/noisy');
    const unreadable = { ...sealed, record: { ...sealed.record, backendRequest: 'sealed:1:AAAA' }, held };
    await fetchForBuyer(unreadable, RESOURCE, journal(), away.exchange, recorder());
    assert.deepEqual(used, ['exchange', 'release']);
    await away.close();
  });

  it('the backend gets the same request under the same key, with the headers that are configured now', async () => {
    const body = Buffer.from('{"city":"Zürich"}');
    const headers = { 'content-type': 'application/json', 'x-api-key': 'configured then' };
    await fetchIt(await bought('/echo/headers?x=1', { method: 'POST', headers, body }));
    const [request, ...others] = merchant.requests;
    assert.equal(others.length, 0);
    assert.deepEqual([request?.method, request?.url, request?.body], ['POST', '/echo/headers?x=1', body]);
    const seen: Readonly<Record<string, unknown>> = request?.headers ?? {};
    assert.deepEqual(
      {
        key: seen['idempotency-key'],
        api: seen['x-api-key'],
        type: seen['content-type'],
        id: seen['x-request-id'],
        payer: seen['agent-commerce-payer'],
        receipt: seen['agent-commerce-receipt'],
        payment: seen['agent-commerce-payment'],
        resource: seen['agent-commerce-resource'],
        protocol: seen['agent-commerce-protocol'],
      },
      {
        key: backendIdempotencyKey(world.terms.payId),
        api: 'configured now',
        type: 'application/json',
        id: world.terms.requestId,
        payer: world.terms.payer,
        receipt: world.terms.receiptId,
        payment: `${world.terms.receiptId} ${world.terms.requestId}`,
        resource: world.terms.resourceId,
        protocol: world.terms.channel,
      },
    );
  });

  it('a backend that fails: undelivered, nothing is kept, and it may be asked again', async () => {
    await fetchIt(await bought('/fail/503'));
    assert.deepEqual(await outcome(), {
      state: 'undelivered',
      reason: 'request_may_be_written',
      metadata: { callId: world.terms.callId, backendErrorCode: 'backend_status_503', backendPath: '/report' },
      status: 503,
    });
    assert.equal(await world.ledger.kept(world.terms.payId), undefined);
    const { events } = await world.store.feed.page({ limit: 1 });
    assert.deepEqual([events[0]?.type, events[0]?.data], ['backend.failed', { code: 'BACKEND_ERROR', status: 503 }]);
    const { dueAt = 0, tries } = (await record()) ?? {};
    assert.deepEqual([tries, dueAt - world.clock], [1, 1_000]);
  });

  it('an answer that is too large to keep: undelivered, and left to its buyer', async () => {
    await fetchIt(await bought('/bytes?size=262145'));
    const { events } = await world.store.feed.page({ limit: 1 });
    assert.deepEqual(events[0]?.data, { code: 'BACKEND_ERROR', reason: 'response_too_large' });
    const { state, dueAt = 0, settledAt = 0 } = (await record()) ?? {};
    assert.deepEqual([state, dueAt], ['undelivered', settledAt + 24 * 60 * 60 * 1_000]);
    await fetchIt(await bought('/bytes?size=262144'));
    assert.equal((await world.ledger.kept(world.terms.payId))?.body.byteLength, 262_144);
  });

  it('a backend that is away: the request certainly was not written', async () => {
    const paid = await bought('/noisy');
    await backend.abort();
    backend = createExchange({ origin: 'http://127.0.0.1:1' });
    await fetchIt(paid);
    assert.equal((await record())?.reason, 'request_not_written');
  });
});

type Answers = (exchange: HttpExchange) => void;

const LIMITS = { timeoutMs: 10_000, maxResponseBytes: 10_485_760, relayStatuses: { sold: [404], unpaid: [409] } };
/** Above the 64 KiB that an answer may have as a whole. */
const LARGE = 100_000;

describe('the whole answer of a backend', () => {
  let handle: Answers;
  let server: HttpServer;
  before(async () => {
    server = await serveHttp((exchange) => handle(exchange));
  });
  after(() => server.stop());

  const fetched = async (answers: Answers, limits = LIMITS) => {
    handle = answers;
    const backend = createExchange({ origin: server.url });
    const request = { method: 'GET', path: '/', headers: {}, body: undefined } as const;
    try {
      return await fetchAnswer(backend.exchange, request, limits);
    } finally {
      backend.abort();
    }
  };
  for (const bytes of [2, LARGE, MAX_KEPT_BYTES])
    it(`of ${bytes} bytes is kept with its status, and headers that no cache may keep`, async () => {
      const body = Buffer.alloc(bytes, 'x');
      const worked = await fetched(({ response }) => {
        response.writeHead(201, { 'content-type': 'text/plain', 'set-cookie': 'own=1', 'cache-control': 'public' });
        response.end(body);
      });
      assert.ok(worked.kind === 'answer');
      const { status, headers, body: kept } = worked.answer;
      assert.deepEqual([status, headers['content-type'], headers['set-cookie']], [201, 'text/plain', undefined]);
      assert.equal(headers['cache-control'], 'private, no-store');
      assert.ok(Buffer.from(kept).equals(body));
    });

  it('that is there as a whole needs no stream of its body', async () => {
    const whole = Buffer.from('short');
    const answer = {
      ...{ status: 200, headers: {}, whole },
      get body(): Readable {
        return assert.fail('the body was asked for');
      },
    };
    const request = { method: 'GET', path: '/', headers: {}, body: undefined } as const;
    const worked = await fetchAnswer(async () => answer, request, LIMITS);
    assert.ok(worked.kind === 'answer');
    assert.equal(worked.answer.body, whole);
  });

  it('of a status that is sold is kept like any other', async () => {
    const worked = await fetched(({ response }) => void response.writeHead(404).end('none'));
    assert.ok(worked.kind === 'answer');
    assert.deepEqual([worked.answer.status, Buffer.from(worked.answer.body).toString()], [404, 'none']);
  });

  it('of a status that is relayed unpaid is a failure that has the whole answer', async () => {
    const worked = await fetched(({ response }) => void response.writeHead(409).end('taken'));
    assert.ok(worked.kind === 'failed');
    const { relayed, ...failure } = worked.failure;
    assert.deepEqual(failure, { status: 409, requestWritten: true });
    assert.deepEqual([relayed?.status, Buffer.from(relayed?.body ?? []).toString()], [409, 'taken']);
  });

  const answering = (status: number): Answers => {
    return ({ response }) => void response.writeHead(status, { location: '/elsewhere' }).end('no');
  };
  const sending = (bytes: number): Answers => {
    return ({ response }) => void response.end(Buffer.alloc(bytes));
  };
  const breaking: Answers = ({ response }) => {
    response.writeHead(200, { 'content-length': LARGE });
    response.write(Buffer.alloc(10), () => response.destroy());
  };
  const failures: readonly (readonly [
    what: string,
    answers: Answers,
    failure: { readonly status: number; readonly reason?: string },
    limits?: Partial<typeof LIMITS>,
  ])[] = [
    ['larger than what is kept', sending(MAX_KEPT_BYTES + 1), { status: 0, reason: 'response_too_large' }],
    [
      'larger than the resource allows',
      sending(1_025),
      { status: 0, reason: 'response_too_large' },
      { maxResponseBytes: 1_024 },
    ],
    ['a 402', answering(402), { status: 402 }],
    ['a 410', answering(410), { status: 410 }],
    ['a 500', answering(500), { status: 500 }],
    ['a redirect', answering(307), { status: 307, reason: 'redirect_not_followed' }],
    ['one that breaks off', breaking, { status: 0, reason: 'transport' }],
    ['one that does not come in time', () => undefined, { status: 0, reason: 'timeout' }, { timeoutMs: 50 }],
  ];
  for (const [what, answers, failure, limits] of failures)
    it(`${what} is a failure`, async () => {
      const worked = await fetched(answers, { ...LIMITS, ...limits });
      assert.ok(worked.kind === 'failed');
      const { cause: _why, ...found } = worked.failure;
      assert.deepEqual(found, { ...failure, requestWritten: true });
    });

  it('an error that is no failure of the backend is thrown', async () => {
    const bug = new Error('bug');
    const broken = () => Promise.reject(bug);
    const request = { method: 'GET', path: '/', headers: {}, body: undefined } as const;
    await assert.rejects(fetchAnswer(broken, request, LIMITS), bug);
  });
});
