import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ask, assertEnvelope } from '../../e2e/ask.ts';
import { openSeller, type Seller } from '../../support/seller.ts';
import { openShop, type Shop } from '../../support/shop.ts';
import { errorOf, message, postA2a, sendMessage, taskOf, VERSION } from './post.ts';
import { IDS, LEGAL, RUNGS } from './rungs.ts';

const MAX_BODY_BYTES = 262_144;
const ENABLED = { protocols: { a2a: { enabled: true } } };
const STRICT = { protocols: { a2a: { enabled: true, errorProfile: 'spec' } } };

describe('the ladder of the A2A front', () => {
  let seller: Seller;
  let strict: Shop;
  let base: string;
  before(async () => {
    seller = await openSeller({ overrides: ENABLED });
    const { chain, merchant } = seller;
    const facilitator = { mode: 'local' } as const;
    strict = await openShop({ chain, merchantUrl: merchant.url, facilitator, overrides: STRICT });
    base = seller.shop.url;
  });
  after(async () => {
    await strict?.close();
    await seller?.close();
  });

  for (const { name, request, headers = VERSION, code, specCode = code, reason, field } of RUNGS) {
    for (const id of IDS)
      it(`${name}: ${code} for id ${JSON.stringify(id)}, under HTTP 200`, async () => {
        const error = errorOf(await postA2a(base, { ...request, id }, headers), id);
        assert.equal(error.code, code, JSON.stringify(error));
        assert.equal(error.data.at(-1)?.reason, reason);
        assert.equal(error.data[0]?.fieldViolations?.[0]?.field, field);
      });
    it(`${name}: ${specCode} in the profile spec, with the same reason`, async () => {
      const error = errorOf(await postA2a(strict.url, { ...request, id: 1 }, headers), 1);
      assert.equal(error.code, specCode);
      assert.equal(error.data.at(-1)?.reason, reason);
    });
    for (const [what, id] of [
      ['null', null],
      ['missing', undefined],
    ] as const)
      it(`${name}: -32600 before anything else when the id is ${what}`, async () => {
        const error = errorOf(await postA2a(base, { ...request, id }, headers), null);
        assert.equal(error.code, -32600);
      });
  }

  for (const [name, request, headers = VERSION] of LEGAL)
    for (const id of IDS)
      it(`11 serves ${name}, id ${JSON.stringify(id)}`, async () => {
        const task = taskOf(await postA2a(base, { ...request, id }, headers), id);
        assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
      });

  it('the version in a query is not looked at', async () => {
    const error = errorOf(await postA2a(base, sendMessage(message('cities')), {}, '/a2a?A2A-Version=1.0'), 1);
    assert.equal(error.data.at(-1)?.reason, 'VERSION_NOT_SUPPORTED');
  });

  it('6 says which version was asked for, and which is served', async () => {
    const error = errorOf(await postA2a(base, sendMessage(message('cities')), { 'a2a-version': '0.3' }), 1);
    assert.equal(error.data[0]?.metadata?.['requested'], '0.3');
    assert.equal(error.data[0]?.metadata?.['supportedVersions'], '1.0');
  });

  for (const [what, body, code] of [
    ['no JSON', '{"jsonrpc":', -32700],
    ['nothing', '', -32700],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), -32700],
    ['a batch', [sendMessage(message('cities'))], -32600],
    ['an empty batch', [], -32600],
    ['a text', '"SendMessage"', -32600],
    ['null', 'null', -32600],
  ] as const)
    it(`4 and 5 ${what} is ${code} with id null`, async () => {
      assert.equal(errorOf(await postA2a(base, body), null).code, code);
    });

  for (const [what, params] of [
    ['a member named twice', '{"message":1,"message":2}'],
    ['a name that reaches a prototype', '{"__proto__":{}}'],
    ['a number that no double can hold', '{"message":9007199254740993}'],
    ['more levels than are read', `${'['.repeat(70)}${']'.repeat(70)}`],
  ])
    for (const id of IDS)
      it(`5 ${what} is -32600 for id ${JSON.stringify(id)}: it is JSON, and no request`, async () => {
        const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"SendMessage","params":${params}}`;
        assert.equal(errorOf(await postA2a(base, body), id).code, -32600);
      });

  for (const id of [true, {}, ['a']])
    it(`5 the id ${JSON.stringify(id)} is none`, async () => {
      assert.equal(errorOf(await postA2a(base, { ...sendMessage(message('cities')), id }), null).code, -32600);
    });

  it('5 a notification runs nothing: it would spend money with nowhere to answer', async () => {
    const { id: _, ...notification } = sendMessage(message('cities'));
    const before = seller.merchant.requests.length;
    assert.equal(errorOf(await postA2a(base, notification), null).code, -32600);
    assert.equal(seller.merchant.requests.length, before);
  });

  for (const path of ['/a2a', '/a2a/']) {
    for (const method of ['GET', 'PUT', 'DELETE'])
      it(`1 ${method} ${path} is 405, POST is what is allowed`, async () => {
        const answer = await ask(base, { method, path });
        assert.equal(answer.status, 405);
        assert.equal(answer.headers.allow, 'POST');
        assertEnvelope(answer, 'METHOD_NOT_ALLOWED');
      });

    it(`2 a body of one byte too many at ${path} is HTTP 413 with -32600, one of the limit is read`, async () => {
      const request = JSON.stringify(sendMessage(message('cities')));
      const full = request.padEnd(MAX_BODY_BYTES);
      taskOf(await postA2a(base, full, VERSION, path));
      const error = errorOf(await postA2a(base, `${full} `, VERSION, path), null, 413);
      assert.deepEqual([error.code, error.data[0]?.reason], [-32600, 'PAYLOAD_TOO_LARGE']);
    });
  }

  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1'])
    it(`3 the content type ${type} is 415 with the envelope of the gateway`, async () => {
      const headers = { ...VERSION, 'content-type': type };
      const answer = await postA2a(base, sendMessage(message('cities')), headers);
      assert.equal(answer.status, 415);
      assertEnvelope(answer, 'UNSUPPORTED_MEDIA_TYPE');
    });

  for (const type of ['application/a2a+json', 'application/json; charset=utf-8'])
    it(`3 the content type ${type} is read`, async () => {
      taskOf(await postA2a(base, sendMessage(message('cities')), { ...VERSION, 'content-type': type }));
    });

  it('7 ListTasks lists nothing in the profile spec, and is not served in the other', async () => {
    const request = { jsonrpc: '2.0', id: 0, method: 'ListTasks', params: { pageSize: 10 } };
    const error = errorOf(await postA2a(base, request), 0);
    assert.deepEqual([error.code, error.data[0]?.reason], [-32004, 'UNSUPPORTED_OPERATION']);
    const { result } = JSON.parse((await postA2a(strict.url, request)).text) as { result: unknown };
    assert.deepEqual(result, { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
  });

  it('is not there when it is not enabled', async () => {
    const { chain, merchant } = seller;
    const shop = await openShop({ chain, merchantUrl: merchant.url, facilitator: { mode: 'local' } });
    try {
      for (const path of ['/a2a', '/a2a/', '/.well-known/agent-card.json', '/a2a/.well-known/agent-card.json'])
        assertEnvelope(await ask(shop.url, { method: path.includes('card') ? 'GET' : 'POST', path }), 'NOT_FOUND');
    } finally {
      await shop.close();
    }
  });
});
