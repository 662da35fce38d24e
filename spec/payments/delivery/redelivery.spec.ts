import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { type BackendConnection, createExchange } from '../../../src/backend/backend-connection.ts';
import type { BackendRequest, HeldConnection } from '../../../src/backend/exchange.ts';
import { type Deliverable, fetchForBuyer } from '../../../src/payments/delivery/redelivery.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { storedRequest } from '../../../src/payments/settlement/stored-purchase.ts';
import { backendIdempotencyKey } from '../../../src/payments/settlement/terms.ts';
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
    await fetchForBuyer(paid, resource, journal(), backend.exchange, recorder());
  };
  const outcome = async (): Promise<unknown> => {
    const { state, reason } = (await record()) ?? {};
    const [receipt] = await receipts();
    return { state, reason, metadata: receipt?.metadata, status: receipt?.backendStatus };
  };

  it('a status that is sold is kept, one that is not or that is relayed unpaid is a failure', async () => {
    await fetchIt(await bought('/fail/404'));
    assert.equal((await world.ledger.kept(world.terms.payId))?.status, 404);
    for (const status of [409, 410]) {
      await fetchIt(await bought(`/fail/${status}`));
      assert.equal(await world.ledger.kept(world.terms.payId), undefined);
      assert.equal((await record())?.state, 'undelivered');
    }
  });

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
        resource: world.terms.resourceId,
        protocol: world.terms.channel,
      },
    );
  });

  const failures: readonly (readonly [string, string, unknown, unknown, string])[] = [
    ['refuses', '/fail/503', 503, { code: 'BACKEND_ERROR', status: 503 }, 'backend_status_503'],
    [
      'redirects',
      '/redirect',
      302,
      { code: 'BACKEND_ERROR', status: 302, reason: 'redirect_not_followed' },
      'redirect_not_followed',
    ],
    ['breaks the connection', '/reset', 0, { code: 'BACKEND_ERROR', reason: 'transport' }, 'reset'],
    ['breaks off', '/broken', 0, { code: 'BACKEND_ERROR', reason: 'transport' }, 'reset'],
  ];
  for (const [what, path, status, data, backendErrorCode] of failures)
    it(`a backend that ${what}: undelivered, nothing is kept, and it may be asked again`, async () => {
      await fetchIt(await bought(path));
      assert.deepEqual(await outcome(), {
        state: 'undelivered',
        reason: 'request_may_be_written',
        metadata: { callId: world.terms.callId, backendErrorCode, backendPath: '/report' },
        status,
      });
      assert.equal(await world.ledger.kept(world.terms.payId), undefined);
      const { events } = await world.store.feed.page({ limit: 1 });
      assert.deepEqual([events[0]?.type, events[0]?.data], ['backend.failed', data]);
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

  it('a backend that is silent: given up after the deadline of the resource', async () => {
    await fetchIt(await bought('/silent'), { ...RESOURCE, timeoutMs: 100 });
    const { events } = await world.store.feed.page({ limit: 1 });
    assert.deepEqual(events[0]?.data, { code: 'BACKEND_ERROR', reason: 'timeout' });
  });

  it('an exchange that throws anything else is a bug, not a failed delivery', async () => {
    const paid = await bought('/noisy');
    const bug = async (): Promise<never> => {
      throw new TypeError('bug');
    };
    await assert.rejects(fetchForBuyer(paid, RESOURCE, journal(), bug, recorder()), TypeError);
  });
});
