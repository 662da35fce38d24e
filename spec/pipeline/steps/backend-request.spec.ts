import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { backendIdempotencyKey } from '../../../src/payments/settlement/terms.ts';
import type { PreparedCall } from '../../../src/pipeline/call.ts';
import { conditionsOf, requestToBackend } from '../../../src/pipeline/middleware/forward.ts';
import { callAt, PAY_ID } from '../calls.ts';

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
