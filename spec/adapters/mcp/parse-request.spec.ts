import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Answered } from '../../e2e/ask.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { ENABLED, MODERN_META, modernHeaders, postMcp } from './post.ts';
import { CASES, call, modern, request, VERSION } from './request-cases.ts';

/** Ids that a request may have; each must come back with its JSON type. */
const IDS = ['a', 7, 0] as const;

const HIDDEN = {
  name: 'Hidden',
  inputSchema: { type: 'object' },
  backend: { method: 'GET', path: '/cities' },
  pricing: { type: 'free' },
  expose: ['http'],
};

interface Answer {
  id?: unknown;
  result?: object;
  error?: { code: number; message: string; data?: object };
}

function read(answer: Answered): Answer {
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(answer.headers['mcp-session-id'], undefined);
  return JSON.parse(answer.text);
}

describe('the checks of a message', () => {
  let testbed: Testbed;
  let base: string;
  before(async () => {
    testbed = await openTestbed({ overrides: { ...ENABLED, resources: { hidden: HIDDEN } } });
    base = testbed.gateway.url;
  });
  after(() => testbed.close());

  for (const [name, message, status, code, headers] of CASES)
    for (const id of IDS)
      it(`${name}: ${code ?? 'result'} for id ${JSON.stringify(id)}`, async () => {
        const answer = await postMcp(base, { ...message, id }, headers);
        const body = read(answer);
        assert.equal(answer.status, status, answer.text);
        assert.equal(body.id, id);
        assert.equal(body.error?.code, code, answer.text);
        assert.equal('result' in body, code === undefined);
      });

  for (const id of [null, 1.5, true, {}, ['a']])
    it(`5 the id ${JSON.stringify(id)} is refused`, async () => {
      const answer = await postMcp(base, { ...request('ping'), id });
      assert.equal(answer.status, 400);
      assert.deepEqual([read(answer).id, read(answer).error?.code], [null, -32600]);
    });

  for (const method of ['notifications/initialized', 'tools/call', 'nothing/known'])
    it(`4 ${method} without an id is a notification: 202, and nothing runs`, async () => {
      const before = testbed.backend.requests.length;
      const answer = await postMcp(base, request(method, call('cities')));
      assert.deepEqual([answer.status, answer.text], [202, '']);
      assert.equal(testbed.backend.requests.length, before, 'no call reached the backend');
    });

  for (const [what, body, code] of [
    ['no JSON', '{"jsonrpc":', -32700],
    ['nothing', '', -32700],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), -32700],
    ['a batch', [{ ...request('ping'), id: 1 }], -32600],
    ['an empty batch', [], -32600],
    ['a text', '"ping"', -32600],
    ['null', 'null', -32600],
    ['an id beyond a double', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32600],
  ] as const)
    it(`2 and 3 ${what}: ${code} without an id`, async () => {
      const answer = await postMcp(base, body);
      assert.equal(answer.status, 400);
      assert.deepEqual([read(answer).id, read(answer).error?.code], [null, code]);
    });

  for (const [what, params] of [
    ['a member twice', '{"a":1,"a":2}'],
    ['a name that changes prototypes', '{"constructor":1}'],
    ['a number beyond a double', '{"a":9007199254740993}'],
  ] as const)
    it(`3 ${what}: -32600 with the id of a lenient reading`, async () => {
      const answer = await postMcp(base, `{"jsonrpc":"2.0","id":7,"method":"ping","params":${params}}`);
      assert.deepEqual([answer.status, read(answer).id, read(answer).error?.code], [400, 7, -32600]);
    });

  it('10 names the served versions, as server/discover does', async () => {
    const meta = { ...MODERN_META, [VERSION]: '2027-01-01' };
    const refused = read(await postMcp(base, { ...modern('tools/list', {}, meta), id: 1 }));
    const discovered = read(
      await postMcp(base, { ...modern('server/discover'), id: 1 }, modernHeaders('server/discover')),
    );
    const { supported, requested } = (refused.error?.data ?? {}) as { supported?: string[]; requested?: string };
    assert.equal(requested, '2027-01-01');
    assert.deepEqual(supported, (discovered.result as { supportedVersions: string[] }).supportedVersions);
  });

  it('an unknown tool and one that is not exposed have the same error', async () => {
    const messages = await Promise.all(
      ['none', 'hidden'].map(async (name) =>
        read(await postMcp(base, { ...request('tools/call', call(name)), id: 1 })),
      ),
    );
    assert.deepEqual(messages[0], messages[1]);
  });

  for (const [asked, answered] of [
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2025-11-25'],
    ['2099-01-01', '2025-11-25'],
    [undefined, '2025-11-25'],
  ] as const)
    it(`initialize answers ${asked} with ${answered}`, async () => {
      const { result } = read(await postMcp(base, { ...request('initialize', { protocolVersion: asked }), id: 0 }));
      assert.equal((result as { protocolVersion: string }).protocolVersion, answered);
    });
});
