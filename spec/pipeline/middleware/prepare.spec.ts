import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventDraft } from '../../../src/events/event.ts';
import type { PreparedCall, ResolvedCall } from '../../../src/pipeline/call.ts';
import { resolve, validate } from '../../../src/pipeline/middleware/prepare.ts';
import type { Resource } from '../../../src/resources/resource.ts';
import { callAt, passed, RESOURCE } from '../calls.ts';

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

const PROBLEMS = [{ path: '$.city', message: 'is missing', keyword: 'required' }];
const request = { method: 'GET', path: '/report?city=a', headers: {}, body: undefined };
const taking = (prepared: object) => ({ resource: { ...RESOURCE, prepare: () => prepared } });

describe('the input of a call', () => {
  it('valid: the call has the stripped input and the whole backend request', async () => {
    const call = callAt('resolved', taking({ ok: true, input: { city: 'a' }, request }));
    assert.equal((await passed(validate(), call.res)).went, true);
    const { stage, input, request: built } = call.call<PreparedCall>();
    assert.deepEqual([stage, input, built], ['prepared', { city: 'a' }, request]);
  });

  it('of a resource whose validator comes with it is checked in the next turn', async () => {
    const log: string[] = [];
    const resource = {
      ...RESOURCE,
      compile() {
        setImmediate(() => log.push('turn'));
        return true;
      },
      prepare() {
        log.push('checked');
        return { ok: false, problems: PROBLEMS };
      },
    };
    const { error } = await passed(validate(), callAt('resolved', { resource }).res);
    assert.deepEqual([log, error?.code], [['turn', 'checked'], 'INPUT_INVALID']);
  });

  it('invalid: an error that lists the problems', async () => {
    const call = callAt('resolved', taking({ ok: false, problems: PROBLEMS }));
    const { went, error } = await passed(validate(), call.res);
    assert.deepEqual([went, error?.code, error?.details], [false, 'INPUT_INVALID', { errors: PROBLEMS }]);
    assert.equal(call.call().stage, 'resolved');
  });

  for (const [what, more, went] of [
    ['invalid because there is none, without a proof: left to the challenge', {}, true],
    ['invalid because there is none, of a free resource: an error', { pricing: { type: 'free' } }, false],
    ['invalid because there is none, with a proof: an error', { proof: { kind: 'header', value: 'proof' } }, false],
    ['invalid although there is one: an error', { withoutInput: false }, false],
  ] as const)
    it(what, async () => {
      const { pricing = RESOURCE.pricing, ...call } = { pricing: undefined, ...more };
      const resource = {
        ...RESOURCE,
        pricing: pricing ?? RESOURCE.pricing,
        prepare: () => ({ ok: false, problems: PROBLEMS }),
      };
      const { res, call: after } = callAt('resolved', {
        proof: { kind: 'none' },
        withoutInput: true,
        ...call,
        resource,
      });
      const passing = await passed(validate(), res);
      assert.deepEqual([passing.went, passing.error?.code], [went, went ? undefined : 'INPUT_INVALID']);
      assert.equal(after().stage, 'resolved');
    });
});
