import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import {
  type BackendAnswer,
  BackendError,
  type Exchange,
  failureCode,
  TOO_LARGE,
  Undeliverable,
} from '../../../src/backend/backend-exchange.ts';
import type { DeliveryRecorder, Undelivered } from '../../../src/payments/delivery/delivery-recorder.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import type { WorkFailure } from '../../../src/payments/settlement/settlement-request.ts';
import { backendIdempotencyKey } from '../../../src/payments/settlement/terms.ts';
import {
  annotationsOfFunded,
  type FundedCall,
  type PreparedCall,
  type ProvenCall,
} from '../../../src/pipeline/call.ts';
import {
  conditionsOf,
  failedUnpaid,
  forward,
  requestToBackend,
  toldByBackend,
} from '../../../src/pipeline/middleware/forward.ts';
import { callAt, free, PAY_ID, passed, proven } from '../calls.ts';

const ANSWER = { status: 200, headers: {}, body: Readable.from([]) };
const failing = (error: BackendError) => () => Promise.reject(error);

/** Sends a free call with a mandate, and gives what became of the mandate. */
async function forwarded(exchange: Exchange) {
  const finished: string[] = [];
  const summary = { method: 'ap2', reference: 'leaf', metadata: {} } as const;
  const finish = async (how: string) => void finished.push(how);
  const call = free({ authorization: { summary, receipt: 'receipt', finish } });
  const { error } = await passed(forward(exchange, {} as DeliveryRecorder), call.res);
  return { finished, error, annotations: annotationsOfFunded(call.call<FundedCall>()) };
}

const USED = { mandateReceipt: 'receipt' };
/** `retryable` is undefined where the call did not fail. */
const FREE: readonly (readonly [string, Exchange, end: string, object, retryable: boolean | undefined])[] = [
  ['answered: used', async () => ANSWER, 'commit', USED, undefined],
  ['answered with a failure: used', async () => ({ ...ANSWER, status: 500 }), 'commit', USED, false],
  [
    'broken off when the request may have left: used',
    failing(new BackendError('transport', true)),
    'commit',
    USED,
    false,
  ],
  ['too late when the request may have left: used', failing(new BackendError('timeout', true)), 'commit', USED, false],
  [
    'certainly never left: released, without a receipt',
    failing(new BackendError('unreachable', false)),
    'release',
    {},
    true,
  ],
  ['never left in time: released, without a receipt', failing(new BackendError('timeout', false)), 'release', {}, true],
];

describe('the mandate of a free call that is forwarded', () => {
  for (const [title, exchange, end, annotations, retryable] of FREE)
    it(title, async () => {
      const sent = await forwarded(exchange);
      assert.deepEqual([sent.finished, sent.annotations], [[end], annotations]);
      assert.equal(sent.error?.retryable, retryable);
      if (sent.error !== undefined)
        assert.equal(/mandate/.test(sent.error.message), !retryable, 'a retry needs another mandate');
    });
});

describe('a free call that is forwarded', () => {
  it('ends at the backend when its caller leaves', async () => {
    const { signal: left } = new AbortController();
    const send: Exchange = async (_request, { signal }) => {
      assert.equal(signal, left);
      return ANSWER;
    };
    assert.equal((await passed(forward(send, {} as DeliveryRecorder), free({ left }).res)).went, true);
  });

  for (const [status, retryable] of [
    [302, false],
    [404, false],
    [500, true],
  ] as const)
    it(`and answered with ${status} is ${retryable ? '' : 'not '}to be tried again`, async () => {
      const send = async () => ({ ...ANSWER, status });
      const { error } = await passed(forward(send, {} as DeliveryRecorder), free().res);
      assert.deepEqual([error?.code, error?.retryable], ['BACKEND_ERROR', retryable]);
    });
});

describe('a paid call that is forwarded', () => {
  const record = { payId: 'p', state: 'settled', changedAt: 0, payer: '0xpayer', receiptId: 'receipt' };
  const paid = (held?: { readonly exchange: Exchange }) =>
    callAt('funded', { funding: { kind: 'paid', record, lease: { drop: () => undefined }, held } });

  it('goes over the connection that was held for it, under a key that stays the same, and outlives its caller', async () => {
    const call = paid({
      exchange: async ({ headers }, limits) => {
        assert.match(headers['idempotency-key'] ?? '', /^pay_/);
        assert.equal(limits.signal, undefined);
        return ANSWER;
      },
    });
    const other = () => assert.fail('another connection');
    const { went } = await passed(forward(other, {} as DeliveryRecorder), call.res);
    assert.deepEqual([went, call.call().stage], [true, 'answered']);
  });

  for (const [title, exchange, requestWritten, repeatable] of [
    ['answered with a failure', async () => ({ ...ANSWER, status: 404 }), true, true],
    ['never sent', failing(new BackendError('unreachable', false)), false, true],
    ['answered with too much, which no repetition changes', failing(new BackendError(TOO_LARGE, true)), true, false],
  ] as const)
    it(`${title}: undelivered, and BACKEND_ERROR`, async () => {
      const recorded: unknown[] = [];
      const deliveries = {
        undelivered: async (_record: object, facts: Undelivered) =>
          recorded.push([facts.requestWritten, facts.repeatable]),
      } as unknown as DeliveryRecorder;
      const { error } = await passed(forward(exchange, deliveries), paid().res);
      assert.deepEqual([error?.code, error?.retryable], ['BACKEND_ERROR', repeatable]);
      assert.equal(error?.details?.retryUntil !== undefined, repeatable);
      assert.deepEqual(recorded, [[requestWritten, repeatable]]);
    });

  it('with a kept answer is not sent again', async () => {
    const sent = () => assert.fail('sent');
    assert.equal((await passed(forward(sent, {} as DeliveryRecorder), callAt('answered').res)).went, true);
  });
});

describe('a call in place that is forwarded', () => {
  const inPlace = { url: undefined, callerHeaders: {}, conditions: { 'if-none-match': '"1"', range: 'bytes=0-1' } };
  const request = { method: 'GET', path: '/', headers: {}, callerHeaders: { cookie: 'a=b' }, body: undefined };
  const answered = async (status: number, more: object) => {
    const seen: Readonly<Record<string, string>>[] = [];
    const exchange: Exchange = async ({ headers }) => {
      seen.push(headers);
      return { ...ANSWER, status };
    };
    const call = callAt('funded', { request, ...more });
    const { went, error } = await passed(forward(exchange, undelivered), call.res);
    return { went, code: error?.code, headers: seen[0] ?? {} };
  };
  const undelivered = { undelivered: async () => undefined } as unknown as DeliveryRecorder;
  const record = { payId: 'p', state: 'settled', changedAt: 0, payer: '0xpayer', receiptId: 'receipt' };
  const paid = { funding: { kind: 'paid', record, lease: { drop: () => undefined }, held: undefined } };
  const unpaid = { funding: { kind: 'free' } };

  it('free: takes its preconditions along, and their outcomes are delivered', async () => {
    const { went, headers } = await answered(304, { ...unpaid, inPlace });
    assert.deepEqual(
      [went, headers['if-none-match'], headers['range'], headers['cookie']],
      [true, '"1"', 'bytes=0-1', 'a=b'],
    );
  });

  it('free, without preconditions: 304 is a failure of the backend', async () => {
    const { went, code } = await answered(304, { ...unpaid, inPlace: { ...inPlace, conditions: {} } });
    assert.deepEqual([went, code], [false, 'BACKEND_ERROR']);
  });

  it('paid: has no preconditions, whatever came', async () => {
    const { went, code, headers } = await answered(304, { ...paid, inPlace });
    assert.deepEqual(
      [went, code, headers['if-none-match'], headers['range'], headers['cookie']],
      [false, 'BACKEND_ERROR', undefined, undefined, 'a=b'],
    );
  });
});

const PAID = { payId: PAY_ID, payer: '0xpayer', receiptId: 'receipt_1' } as PaymentRecord;
const IN_PLACE = { url: 'https://shop.example/r', conditions: { 'if-none-match': '"1"' } };
const OF_A_PAYMENT = ['agent-commerce-payer', 'agent-commerce-receipt', 'idempotency-key'];

const callWith = (more: object = {}) => callAt('prepared', more).call<PreparedCall>();
const headersOf = (paid: PaymentRecord | undefined, more?: object) => requestToBackend(callWith(more), paid).headers;

describe('the request to the backend', () => {
  it('is that of the call in method, path and body', () => {
    const request = { method: 'PUT', path: '/r?a=1', headers: {}, body: Buffer.from('{}') };
    const { headers: _added, ...sent } = requestToBackend(callWith({ request }), undefined);
    const { headers: _none, ...asked } = request;
    assert.deepEqual(sent, asked);
  });

  it('has the headers of the configuration and what tells the call', () => {
    const request = { method: 'GET', path: '/', headers: { 'x-api-key': 'k' }, body: undefined };
    assert.partialDeepStrictEqual(headersOf(undefined, { request, channel: 'mcp' }), {
      'x-api-key': 'k',
      'x-request-id': 'r',
      'agent-commerce-protocol': 'mcp',
      'agent-commerce-resource': 'report',
    });
  });

  it('names payer, receipt and key of a payment, and none of them without one', () => {
    const paid = headersOf(PAID);
    assert.deepEqual(
      OF_A_PAYMENT.map((name) => paid[name]),
      ['0xpayer', 'receipt_1', backendIdempotencyKey(PAY_ID)],
    );
    const free = headersOf(undefined);
    assert.deepEqual(
      OF_A_PAYMENT.filter((name) => name in free),
      [],
    );
  });

  it('passes the trace on where there is one', () => {
    const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'a=1' };
    assert.partialDeepStrictEqual(headersOf(undefined, { trace }), trace);
    assert.equal('traceparent' in headersOf(undefined), false);
  });

  it('asks the caches of the backend only for a free call in place', () => {
    const request = { method: 'GET', path: '/', headers: {}, callerHeaders: { cookie: 'c' }, body: undefined };
    const free = headersOf(undefined, { inPlace: IN_PLACE, request });
    assert.partialDeepStrictEqual(free, { 'if-none-match': '"1"', cookie: 'c' });
    assert.equal('if-none-match' in headersOf(PAID, { inPlace: IN_PLACE, request }), false);
    assert.deepEqual(
      [
        conditionsOf({ inPlace: IN_PLACE } as unknown as PreparedCall, undefined),
        conditionsOf({ inPlace: { ...IN_PLACE, conditions: {} } } as unknown as PreparedCall, undefined),
        conditionsOf({} as PreparedCall, undefined),
      ],
      [IN_PLACE.conditions, undefined, undefined],
    );
  });
});

describe('a call that was not paid, because its backend did not answer first', () => {
  const failures: readonly (readonly [
    what: string,
    failure: WorkFailure,
    code: string,
    details: object,
    retryable: boolean,
  ])[] = [
    ['failed with 500', { status: 500, requestWritten: true }, 'BACKEND_ERROR', { reason: 'backend_5xx' }, true],
    ['knows nothing of it', { status: 404, requestWritten: true }, 'BACKEND_ERROR', { reason: 'backend_4xx' }, false],
    [
      'sends elsewhere',
      { status: 307, reason: 'redirect_not_followed', requestWritten: true },
      'BACKEND_ERROR',
      { reason: 'redirect_not_followed' },
      false,
    ],
    [
      'was silent',
      { status: 0, reason: 'timeout', requestWritten: true },
      'BACKEND_TIMEOUT',
      { reason: 'timeout', timeoutMs: 1_000 },
      true,
    ],
    [
      'was not reached',
      { status: 0, reason: 'unreachable', requestWritten: false },
      'BACKEND_ERROR',
      { reason: 'transport' },
      true,
    ],
    [
      'answered more than can be kept',
      { status: 0, reason: 'response_too_large', requestWritten: true },
      'BACKEND_ERROR',
      { reason: 'response_too_large' },
      false,
    ],
  ];
  for (const [what, failure, code, details, retryable] of failures)
    it(`${what}: ${code}, ${retryable ? '' : 'not '}to be tried again, and no word of a payment that was taken`, () => {
      const { call, types, events } = proven();
      const cause = new Error('why');
      const error = failedUnpaid(call<ProvenCall>(), { ...failure, cause });
      assert.deepEqual([error.code, error.details, error.retryable], [code, details, retryable]);
      assert.ok(error.cause instanceof Undeliverable && error.cause.cause === cause);
      assert.equal(error.cause.code, failureCode(failure), 'the log has what the caller is not told');
      assert.match(error.message, /no payment was taken/);
      assert.deepEqual(types(), ['backend.failed']);
      // The event has the status itself, the caller its class.
      const { timeoutMs: _own, ...told } = details as { readonly timeoutMs?: number; readonly reason?: string };
      const { status } = failure;
      const ofClass = told.reason?.startsWith('backend_') === true;
      assert.deepEqual(events()[0]?.data, {
        code,
        ...(status === 0 ? {} : { status }),
        ...(ofClass ? {} : told),
      });
    });
});

const JSON_TYPE = { 'content-type': 'application/json' };
const MOST_BYTES = 4_096;
/** A JSON text of so many bytes. */
const ofBytes = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2));

/** An answer as a stream in pieces of 1,000 bytes, or as a whole. */
function answered(text: string | Uint8Array, { status = 404, headers = JSON_TYPE as object, whole = false } = {}) {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / 1_000) }, (_, at) =>
    bytes.subarray(at * 1_000, at * 1_000 + 1_000),
  );
  const body = Readable.from(pieces, { objectMode: false });
  const answer = { status, headers, body, ...(whole ? { whole: bytes } : {}) } as BackendAnswer;
  return { answer, body };
}

describe('what a backend says of its failure', () => {
  for (const whole of [false, true])
    it(`is its JSON body up to ${MOST_BYTES} bytes, ${whole ? 'as a whole' : 'as a stream'}`, async () => {
      const text = ofBytes(MOST_BYTES);
      assert.deepEqual(await toldByBackend(answered(text, { whole }).answer), { status: 404, body: JSON.parse(text) });
      const larger = answered(ofBytes(MOST_BYTES + 1), { whole });
      assert.equal(await toldByBackend(larger.answer), undefined);
      if (!whole) assert.ok(larger.body.destroyed, 'its connection is let go');
    });

  it('has of the headers those that answers relay, without the ones of the body', async () => {
    const headers = {
      'content-type': 'application/problem+json; charset=utf-8',
      'content-length': '2',
      'cache-control': 'public',
      'retry-after': '3',
      'content-language': 'en',
      'set-cookie': ['a=b'],
      'x-internal': 'c',
      link: '<http://127.0.0.1:3000/>; rel="next"',
    };
    assert.deepEqual(await toldByBackend(answered('{}', { status: 503, headers }).answer), {
      status: 503,
      headers: { 'retry-after': '3', 'content-language': 'en' },
      body: {},
    });
    const long = { ...JSON_TYPE, 'retry-after': 'x'.repeat(MOST_BYTES) };
    assert.deepEqual(await toldByBackend(answered('{}', { headers: long }).answer), { status: 404, body: {} });
  });

  const NOTHING: Readonly<Record<string, ReturnType<typeof answered>>> = {
    'is no JSON by its type': answered('{}', { headers: { 'content-type': 'text/html' } }),
    'has no type': answered('{}', { headers: {} }),
    'is compressed': answered('{}', { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } }),
    'does not parse': answered('<html>'),
    'is empty': answered(''),
    'is no UTF-8': answered(Buffer.from([0x22, 0xff, 0x22])),
    'declares more than the bound': answered('{}', { headers: { ...JSON_TYPE, 'content-length': '4097' } }),
    'asks for money': answered('{"accepts":[]}', { status: 402 }),
    'sends elsewhere': answered('{}', { status: 302 }),
  };
  for (const [what, { answer, body }] of Object.entries(NOTHING))
    it(`is nothing where it ${what}`, async () => {
      assert.equal(await toldByBackend(answer), undefined);
      assert.ok(body.destroyed, 'its connection is let go');
    });

  it('is nothing where it breaks off', async () => {
    const body = Readable.from(
      (function* () {
        yield '{"a":';
        throw new Error('reset');
      })(),
    );
    assert.equal(await toldByBackend({ status: 500, headers: JSON_TYPE, body }), undefined);
  });
});
