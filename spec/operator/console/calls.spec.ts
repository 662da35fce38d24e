import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CommerceEvent, EventType } from '../../../src/events/event.ts';
import { createCalls, MAX_EVENTS, matches } from '../../../src/operator/console/calls.js';

let position = 0;

/** The call is named after its request unless it has a name. */
function event(type: EventType, facts: Partial<CommerceEvent> = {}): CommerceEvent {
  position += 1;
  const { requestId = 'req-1' } = facts;
  const at = new Date(1_800_000_000_000 + position).toISOString();
  return {
    id: `evt_1800000000000-${position}`,
    type,
    requestId,
    callId: `call of ${requestId}`,
    resourceId: 'report',
    at,
    adapter: 'http',
    ...facts,
  };
}

function callOf(events: readonly CommerceEvent[]) {
  const calls = createCalls();
  calls.add(events);
  return calls.get('call of req-1') ?? assert.fail('a call');
}

const settled = { data: { transaction: '0xabc' } };

describe('calls under one request id', () => {
  it('have the ids of the gateway: a call of another caller under the same request id is another one', () => {
    const own = { callId: 'call_own' };
    const calls = createCalls();
    calls.add([
      event('resource.requested', { callId: 'call_challenged' }),
      event('payment.required', { callId: 'call_challenged' }),
      event('resource.requested', own),
      event('payment.settled', { ...own, ...settled }),
      event('resource.requested', { callId: 'call_stranger', resourceId: 'free' }),
      event('backend.failed', { callId: 'call_stranger', resourceId: 'free', data: { code: 'BACKEND_ERROR' } }),
      event('resource.delivered', own),
    ]);
    assert.deepEqual(
      calls.list().map(({ key, requestId, outcome, transaction }) => [key, requestId, outcome, transaction]),
      [
        ['call_stranger', 'req-1', 'failed', undefined],
        ['call_own', 'req-1', 'delivered', '0xabc'],
        ['call_challenged', 'req-1', 'asked', undefined],
      ],
    );
    const [first] = calls.list();
    assert.ok(matches(first ?? assert.fail(), { words: 'call_stranger', outcome: '' }));
  });
});

describe('a call as its events show it', () => {
  const requested = () => event('resource.requested');
  for (const { outcome, after, reason, transaction } of [
    { outcome: 'requested', after: [] },
    { outcome: 'asked', after: [event('payment.required')] },
    {
      outcome: 'refused',
      after: [event('payment.rejected', { data: { reason: 'insufficient_funds' } }), event('payment.required')],
      reason: 'insufficient_funds',
    },
    {
      outcome: 'refused',
      after: [event('authorization.rejected', { data: { reason: 'expired' } })],
      reason: 'expired',
    },
    { outcome: 'requested', after: [event('payment.verified')] },
    { outcome: 'paid', after: [event('payment.settled', settled)], transaction: '0xabc' },
    { outcome: 'answered', after: [event('backend.called', { data: { status: 200 } })] },
    { outcome: 'delivered', after: [event('backend.called'), event('resource.delivered')] },
    {
      outcome: 'failed',
      after: [event('backend.failed', { data: { code: 'BACKEND_ERROR' } })],
      reason: 'BACKEND_ERROR',
    },
    {
      outcome: 'lost',
      after: [event('payment.settled', settled), event('backend.failed', { data: { code: 'BACKEND_ERROR' } })],
      reason: 'BACKEND_ERROR',
      transaction: '0xabc',
    },
    {
      outcome: 'lost',
      after: [event('payment.settled', settled), event('backend.called', { data: { status: 200 } })],
      transaction: '0xabc',
    },
    {
      outcome: 'lost',
      after: [
        event('payment.settled', settled),
        event('backend.failed', { data: { code: 'BACKEND_ERROR' } }),
        event('backend.called', { data: { status: 200 } }),
      ],
      reason: 'BACKEND_ERROR',
      transaction: '0xabc',
    },
    {
      outcome: 'delivered',
      after: [event('payment.settled', settled), event('backend.called'), event('resource.delivered')],
      transaction: '0xabc',
    },
    {
      outcome: 'lost',
      after: [event('payment.settled', settled), event('backend.called', { data: { status: 200, clientGone: true } })],
      reason: 'CLIENT_GONE',
      transaction: '0xabc',
    },
  ])
    it(`is ${outcome} after ${after.map(({ type }) => type).join(', ') || 'the request'}`, () => {
      const call = callOf([{ ...requested(), id: 'evt_1-0' }, ...after]);
      assert.deepEqual([call.outcome, call.reason, call.transaction], [outcome, reason, transaction]);
    });

  for (const { data, shown } of [
    { data: { code: 'INPUT_INVALID' }, shown: ['refused', 'input'] },
    { data: { code: 'PAYMENT_REPLAYED' }, shown: ['refused', 'replayed'] },
    { data: { code: 'RATE_LIMITED' }, shown: ['refused', 'RATE_LIMITED'] },
    { data: { code: 'STORAGE_ERROR' }, shown: ['failed', 'STORAGE_ERROR'] },
    { data: { code: 'GATEWAY_BUSY', reason: 'backend_unreachable' }, shown: ['away', 'GATEWAY_BUSY'] },
  ])
    it(`is ${shown.join(': ')} after a request that ended with ${data.code}`, () => {
      const call = callOf([event('resource.requested', { status: 'error', data })]);
      assert.deepEqual([call.outcome, call.reason], shown);
    });

  it('whose paid attempt failed and whose next one delivers is delivered', () => {
    const call = callOf([
      event('resource.requested'),
      event('payment.settled', settled),
      event('backend.failed'),
      event('resource.delivered'),
    ]);
    assert.deepEqual([call.outcome, call.transaction], ['delivered', '0xabc']);
  });
});

describe('the list of calls', () => {
  it('is newest first by request, in the order of positions, whatever order the events come in', () => {
    const calls = createCalls();
    const events = ['a', 'b', 'c'].map((requestId) => event('resource.requested', { requestId }));
    const late = { ...event('resource.requested', { requestId: 'd' }), id: 'evt_1800000000001-0' };
    calls.add([late, ...events.toReversed()]);
    assert.deepEqual(
      calls.list().map(({ requestId }) => requestId),
      ['d', 'c', 'b', 'a'],
    );
  });

  it('orders ten after nine', () => {
    const calls = createCalls();
    for (const id of ['evt_5-9', 'evt_5-10', 'evt_10-0', 'evt_9-0'])
      calls.add([{ ...event('resource.requested', { requestId: id }), id }]);
    assert.deepEqual(
      calls.list().map(({ requestId }) => requestId),
      ['evt_10-0', 'evt_9-0', 'evt_5-10', 'evt_5-9'],
    );
  });

  it('takes an event once, and leaves calls that have not changed as they were', () => {
    const calls = createCalls();
    const first = event('resource.requested', { requestId: 'first' });
    assert.equal(calls.add([first]), true);
    const before = calls.get('call of first');
    assert.equal(calls.add([first]), false);
    calls.add([event('resource.requested', { requestId: 'second' })]);
    assert.equal(calls.get('call of first'), before);
    assert.equal(before?.events.length, 1);
  });

  it(`keeps ${MAX_EVENTS} events, and the oldest go first`, () => {
    const calls = createCalls();
    const events = Array.from({ length: MAX_EVENTS }, (_, at) => event('resource.requested', { requestId: `r${at}` }));
    calls.add(events);
    assert.equal(calls.list().length, MAX_EVENTS);
    calls.add([event('resource.requested', { requestId: 'last' })]);
    assert.equal(calls.list().length, MAX_EVENTS);
    assert.deepEqual([calls.get('call of r0'), calls.list()[0]?.requestId], [undefined, 'last']);
  });
});

describe('the filter', () => {
  it('"Paid, not delivered" finds a paid call whose answer waits for its buyer', () => {
    const kept = callOf([event('resource.requested'), event('payment.settled', settled), event('backend.called')]);
    assert.deepEqual(
      ['lost', 'answered'].map((outcome) => matches(kept, { words: '', outcome })),
      [true, false],
    );
  });

  const call = callOf([event('resource.requested'), event('payment.settled', settled), event('backend.failed')]);
  for (const { words, outcome = '', found } of [
    { words: '', found: true },
    { words: 'REPORT', found: true },
    { words: 'report http', found: true },
    { words: 'report mcp', found: false },
    { words: '0xabc', found: true },
    { words: 'not delivered', found: true },
    { words: '', outcome: 'lost', found: true },
    { words: '', outcome: 'failed', found: false },
    { words: 'report', outcome: 'delivered', found: false },
  ])
    it(`"${words}"${outcome && ` and ${outcome}`} ${found ? 'finds' : 'leaves out'} a paid call that failed`, () =>
      assert.equal(matches(call, { words, outcome }), found));
});
