import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { INPUT, message, openWatchedShop, rpc, TOOL, tool, type WatchedShop } from './callers.ts';

const WARN = 40;

describe('what became of a call', () => {
  let seller: WatchedShop['seller'];
  let invoke: WatchedShop['invoke'];
  let post: WatchedShop['post'];
  let proof: WatchedShop['proof'];
  let lineOf: WatchedShop['lineOf'];
  let countOf: WatchedShop['countOf'];
  before(async () => {
    ({ seller, invoke, post, proof, lineOf, countOf } = await openWatchedShop());
  });
  after(() => seller.close());

  /** `send` answers when the call is over. */
  const cases: readonly {
    readonly rule: string;
    readonly said: readonly [channel: string | undefined, resource: string | undefined, outcome: string | undefined];
    readonly warns?: boolean;
    readonly send: (id: string) => Promise<Response>;
  }[] = [
    { rule: 'a free call over HTTP', said: ['http', 'cities', 'delivered'], send: (id) => invoke(id, 'cities', {}) },
    {
      rule: 'a free call over MCP',
      said: ['mcp', 'cities', 'delivered'],
      send: (id) => post('/mcp', id, tool('cities', {})),
    },
    {
      rule: 'a free call over A2A',
      said: ['a2a', 'cities', 'delivered'],
      send: (id) => post('/a2a', id, message('cities', {})),
    },
    { rule: 'a challenge over HTTP', said: ['http', TOOL, 'payment_required'], send: (id) => invoke(id, TOOL, INPUT) },
    {
      rule: 'a challenge over MCP',
      said: ['mcp', TOOL, 'payment_required'],
      send: (id) => post('/mcp', id, tool(TOOL, INPUT)),
    },
    {
      rule: 'a challenge over A2A',
      said: ['a2a', TOOL, 'payment_required'],
      send: (id) => post('/a2a', id, message(TOOL, INPUT)),
    },
    {
      rule: 'a purchase over HTTP',
      said: ['http', TOOL, 'delivered'],
      send: async (id) => invoke(id, TOOL, INPUT, await proof()),
    },
    {
      rule: 'a purchase over MCP',
      said: ['mcp', TOOL, 'delivered'],
      send: async (id) => post('/mcp', id, tool(TOOL, INPUT, await proof())),
    },
    {
      rule: 'a purchase over A2A',
      said: ['a2a', TOOL, 'delivered'],
      send: async (id) => post('/a2a', id, message(TOOL, INPUT, await proof())),
    },
    {
      rule: 'an answer that was delivered before',
      said: ['http', TOOL, 'replayed'],
      async send(id) {
        const again = await proof();
        await (await invoke(`first-${id}`, TOOL, INPUT, again)).text();
        return invoke(id, TOOL, INPUT, again);
      },
    },
    {
      rule: 'a merchant that fails, over HTTP',
      said: ['http', 'free_failing', 'BACKEND_ERROR'],
      warns: true,
      send: (id) => invoke(id, 'free_failing', { status: 500 }),
    },
    {
      rule: 'a merchant that fails, over MCP, which answers 200',
      said: ['mcp', 'free_failing', 'BACKEND_ERROR'],
      warns: true,
      send: (id) => post('/mcp', id, tool('free_failing', { status: 500 })),
    },
    {
      rule: 'a merchant that fails, over A2A, which answers 200',
      said: ['a2a', 'free_failing', 'BACKEND_ERROR'],
      warns: true,
      send: (id) => post('/a2a', id, message('free_failing', { status: 500 })),
    },
    {
      rule: 'an answer that breaks off in the middle',
      said: ['http', 'free_broken', 'BACKEND_ERROR'],
      warns: true,
      send: (id) => invoke(id, 'free_broken', {}),
    },
    {
      rule: 'an answer that breaks off, over MCP',
      said: ['mcp', 'free_broken', 'BACKEND_ERROR'],
      warns: true,
      send: (id) => post('/mcp', id, tool('free_broken', {})),
    },
    { rule: 'an input that does not fit', said: ['http', TOOL, 'INPUT_INVALID'], send: (id) => invoke(id, TOOL, {}) },
    {
      rule: 'a resource that is not there, over HTTP',
      said: ['http', undefined, 'RESOURCE_NOT_FOUND'],
      send: (id) => invoke(id, 'hidden', {}),
    },
    {
      rule: 'a resource that is not there, over MCP',
      said: ['mcp', undefined, 'RESOURCE_NOT_FOUND'],
      send: (id) => post('/mcp', id, tool('hidden', {})),
    },
    {
      rule: 'a body that is no JSON, over HTTP',
      said: ['http', undefined, 'INPUT_INVALID'],
      send: (id) => post('/api/resources/cities/invoke', id, '{'),
    },
    {
      rule: 'a body that is no JSON, over MCP',
      said: ['mcp', undefined, '-32700'],
      send: (id) => post('/mcp', id, '{'),
    },
    {
      rule: 'a body that is no JSON, over A2A',
      said: ['a2a', undefined, '-32700'],
      send: (id) => post('/a2a', id, '{'),
    },
    {
      rule: 'a method that A2A knows and we do not',
      said: ['a2a', undefined, '-32004'],
      send: (id) => post('/a2a', id, rpc('GetTask', { id: '1' })),
    },
    {
      rule: 'a message that is no call',
      said: ['mcp', undefined, undefined],
      send: (id) => post('/mcp', id, rpc('tools/list', {})),
    },
    {
      rule: 'a request that is for no front',
      said: [undefined, undefined, 'NOT_FOUND'],
      send: (id) => post('/nowhere', id, '{}'),
    },
  ];
  for (const { rule, said, warns = false, send } of cases) {
    it(`${rule} is told in its line, and counted`, async () => {
      const [channel, resource, outcome] = said;
      const counted = (): Promise<number> => countOf(resource ?? '', channel ?? '', outcome ?? '');
      const before = await counted();
      const id = `outcome-${randomUUID()}`;
      await (await send(id)).text().catch(() => 'broken off');
      const line = await lineOf(id);
      assert.deepEqual([line.channel, line.resource, line.outcome], said);
      assert.equal(line.level === WARN, warns);
      // What was bought first to be bought again is counted too, with another outcome.
      assert.equal((await counted()) - before, channel === undefined || outcome === undefined ? 0 : 1);
    });
  }

  it('is client_gone for whoever leaves before his answer, and in the middle of it', async () => {
    for (const [resource, input] of [
      ['free_silent', {}],
      ['free_slow', { chunks: 1000, everyMs: 20 }],
    ] as const) {
      const id = `gone-${resource}`;
      const headers = { 'content-type': 'application/json', 'x-request-id': id };
      const leaving = http.request(`${seller.shop.url}/api/resources/${resource}/invoke`, { method: 'POST', headers });
      leaving.on('error', () => undefined);
      leaving.on('response', () => leaving.destroy());
      const reached = seller.merchant.nextRequest(resource === 'free_silent' ? '/silent' : '/slow');
      leaving.end(JSON.stringify(input));
      await reached;
      if (resource === 'free_silent') leaving.destroy();
      assert.equal((await lineOf(id)).outcome, 'client_gone');
      assert.equal(await countOf(resource, 'http', 'client_gone'), 1);
    }
  });
});
