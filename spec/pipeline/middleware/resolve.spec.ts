import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventDraft } from '../../../src/events/event.ts';
import type { ResolvedCall } from '../../../src/pipeline/call.ts';
import { resolve } from '../../../src/pipeline/middleware/prepare.ts';
import type { Resource } from '../../../src/resources/resource.ts';
import { callAt, passed } from '../calls.ts';

const report = { id: 'report', exposedVia: ['http'] } as unknown as Resource;
const catalogue = { byId: new Map([['report', report]]) };

async function resolved(more: object) {
  const events: EventDraft[] = [];
  const call = callAt('received', more);
  const feed = { push: (event: EventDraft) => void events.push(event), withdraw: () => [] };
  const { went, error } = await passed(resolve(catalogue, feed), call.res);
  return { went, error, events, call: call.call() };
}

describe('the resource of a call', () => {
  it('exposed on its channel: resolved, with a journal that begins with the request', async () => {
    const { went, call, events } = await resolved({ channel: 'http' });
    assert.deepEqual([went, call.stage, (call as ResolvedCall).resource], [true, 'resolved', report]);
    (call as ResolvedCall).journal.flush();
    assert.deepEqual(
      events.map(({ type, requestId, callId, adapter }) => [type, requestId, callId, adapter]),
      [['resource.requested', 'r', 'c', 'http']],
    );
  });

  it('unknown, and exposed on another channel only: the same answer, and no event', async () => {
    const [unknown, hidden] = [await resolved({ resourceId: 'other' }), await resolved({ channel: 'mcp' })];
    for (const { went, error, events, call } of [unknown, hidden])
      assert.deepEqual([went, error?.code, events, call.stage], [false, 'RESOURCE_NOT_FOUND', [], 'received']);
    assert.deepEqual(unknown.error?.message, hidden.error?.message);
  });
});
