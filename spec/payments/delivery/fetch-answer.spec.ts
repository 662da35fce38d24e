import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { createExchange } from '../../../src/backend/backend-connection.ts';
import { fetchAnswer } from '../../../src/payments/delivery/fetch-answer.ts';
import { MAX_KEPT_BYTES } from '../../../src/payments/ledger/ledger.ts';
import { type HttpExchange, type HttpServer, serveHttp } from '../../support/http-server.ts';

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
  const failureOf = async (answers: Answers, limits = LIMITS) => {
    const worked = await fetched(answers, limits);
    assert.ok(worked.kind === 'failed');
    const { cause: _why, ...failure } = worked.failure;
    return failure;
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

  it('that is larger than what is kept, or than the resource allows, is a failure', async () => {
    const sent = (bytes: number): Answers => {
      return ({ response }) => void response.end(Buffer.alloc(bytes));
    };
    const tooLarge = { status: 0, reason: 'response_too_large', requestWritten: true };
    assert.deepEqual(await failureOf(sent(MAX_KEPT_BYTES + 1)), tooLarge);
    assert.deepEqual(await failureOf(sent(1_025), { ...LIMITS, maxResponseBytes: 1_024 }), tooLarge);
  });

  it('of another status than 2xx is a failure with that status; a redirect says so', async () => {
    const answering = (status: number): Answers => {
      return ({ response }) => void response.writeHead(status, { location: '/elsewhere' }).end('no');
    };
    for (const status of [402, 410, 500])
      assert.deepEqual(await failureOf(answering(status)), { status, requestWritten: true });
    assert.deepEqual(await failureOf(answering(307)), {
      status: 307,
      reason: 'redirect_not_followed',
      requestWritten: true,
    });
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

  it('that breaks off is a failure, however much of it came', async () => {
    const failure = await failureOf(({ response }) => {
      response.writeHead(200, { 'content-length': LARGE });
      response.write(Buffer.alloc(10), () => response.destroy());
    });
    assert.deepEqual(failure, { status: 0, reason: 'transport', requestWritten: true });
  });

  it('that does not come in time is a failure', async () => {
    const failure = await failureOf(() => undefined, { ...LIMITS, timeoutMs: 50 });
    assert.deepEqual(failure, { status: 0, reason: 'timeout', requestWritten: true });
  });

  it('an error that is no failure of the backend is thrown', async () => {
    const bug = new Error('bug');
    const broken = () => Promise.reject(bug);
    const request = { method: 'GET', path: '/', headers: {}, body: undefined } as const;
    await assert.rejects(fetchAnswer(broken, request, LIMITS), bug);
  });
});
