import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventDraft } from '../../src/events/event.ts';
import { openJournal } from '../../src/events/journal.ts';

const CALL = { requestId: 'req_1', callId: 'call_1', resourceId: 'report', adapter: 'http' } as const;

function journal() {
  const sent: EventDraft[] = [];
  const clock = () => Date.UTC(2026, 0, 1);
  const sink = {
    push: (event: EventDraft) => void sent.push(event),
    withdraw: (requestId: string) => sent.splice(0).filter((event) => event.requestId === requestId),
  };
  return { sent, journal: openJournal(CALL, sink, clock) };
}

describe('the journal of a call', () => {
  it('keeps events until they are taken or flushed', () => {
    const { sent, journal: pages } = journal();
    pages.record('resource.requested');
    assert.deepEqual(sent, []);
    pages.flush();
    assert.deepEqual(sent, [
      {
        type: 'resource.requested',
        requestId: 'req_1',
        callId: 'call_1',
        resourceId: 'report',
        at: '2026-01-01T00:00:00.000Z',
        adapter: 'http',
      },
    ]);
  });

  it('says in the request how a call ended that became nothing else', () => {
    for (const more of [false, true]) {
      const { sent, journal: pages } = journal();
      pages.record('resource.requested');
      if (more) pages.record('payment.rejected');
      pages.refused('GATEWAY_BUSY', 'backend_unreachable');
      const told = { code: 'GATEWAY_BUSY', reason: 'backend_unreachable' };
      assert.deepEqual([sent[0]?.status, sent[0]?.data], more ? [undefined, undefined] : ['error', told]);
    }
  });

  it('a transition takes along what still waits of an earlier call under the same request id', () => {
    const { sent, journal: pages } = journal();
    pages.record('payment.required');
    pages.flush();
    pages.record('payment.verified');
    assert.deepEqual(
      pages.take().map((event) => event.type),
      ['payment.required', 'payment.verified'],
    );
    assert.deepEqual(sent, []);
  });

  it('what a transition takes is not flushed again, and order is kept', () => {
    const { sent, journal: pages } = journal();
    pages.record('resource.requested');
    pages.record('payment.verified', { status: 'ok' });
    assert.deepEqual(
      pages.take().map((event) => event.type),
      ['resource.requested', 'payment.verified'],
    );
    pages.record('payment.settled');
    pages.flush();
    pages.flush();
    assert.deepEqual(
      sent.map((event) => event.type),
      ['payment.settled'],
    );
  });
});
