import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { describe, it } from 'node:test';
import { decodePaymentResponseHeader } from '@x402/core/http';
import { INPUT, message, rpc, TOOL, tool, watchedGateway } from './callers.ts';

const WARN = 40;

describe('the outcome of a call', () => {
  const { seller: testbed, invoke, post, proof, lineOf, countOf } = watchedGateway();

  type Shown = readonly [channel: string | undefined, resource: string | undefined, outcome: string | undefined];
  /** `send` answers when the call is over. `warns`: the line is a warning. */
  const cases: readonly (readonly [rule: string, Shown, send: (id: string) => Promise<Response>, warns?: 'warns'])[] = [
    ['a free call over HTTP', ['http', 'cities', 'delivered'], (id) => invoke(id, 'cities', {})],
    ['a free call over MCP', ['mcp', 'cities', 'delivered'], (id) => post('/mcp', id, tool('cities', {}))],
    ['a free call over A2A', ['a2a', 'cities', 'delivered'], (id) => post('/a2a', id, message('cities', {}))],
    ['a challenge over HTTP', ['http', TOOL, 'payment_required'], (id) => invoke(id, TOOL, INPUT)],
    ['a challenge over MCP', ['mcp', TOOL, 'payment_required'], (id) => post('/mcp', id, tool(TOOL, INPUT))],
    ['a challenge over A2A', ['a2a', TOOL, 'payment_required'], (id) => post('/a2a', id, message(TOOL, INPUT))],
    ['a purchase over HTTP', ['http', TOOL, 'delivered'], async (id) => invoke(id, TOOL, INPUT, await proof())],
    [
      'a purchase over MCP',
      ['mcp', TOOL, 'delivered'],
      async (id) => post('/mcp', id, tool(TOOL, INPUT, await proof())),
    ],
    [
      'a purchase over A2A',
      ['a2a', TOOL, 'delivered'],
      async (id) => post('/a2a', id, message(TOOL, INPUT, await proof())),
    ],
    [
      'an answer that was delivered before',
      ['http', TOOL, 'replayed'],
      async (id) => {
        const again = await proof();
        await (await invoke(`first-${id}`, TOOL, INPUT, again)).text();
        return invoke(id, TOOL, INPUT, again);
      },
    ],
    [
      'a backend that fails, over HTTP',
      ['http', 'free_failing', 'BACKEND_ERROR'],
      (id) => invoke(id, 'free_failing', { status: 500 }),
      'warns',
    ],
    [
      'a backend that fails, over MCP, which answers 200',
      ['mcp', 'free_failing', 'BACKEND_ERROR'],
      (id) => post('/mcp', id, tool('free_failing', { status: 500 })),
      'warns',
    ],
    [
      'a backend that fails, over A2A, which answers 200',
      ['a2a', 'free_failing', 'BACKEND_ERROR'],
      (id) => post('/a2a', id, message('free_failing', { status: 500 })),
      'warns',
    ],
    [
      'an answer that breaks off in the middle',
      ['http', 'free_broken', 'BACKEND_ERROR'],
      (id) => invoke(id, 'free_broken', {}),
      'warns',
    ],
    [
      'an answer that breaks off, over MCP',
      ['mcp', 'free_broken', 'BACKEND_ERROR'],
      (id) => post('/mcp', id, tool('free_broken', {})),
      'warns',
    ],
    ['an invalid input', ['http', TOOL, 'INPUT_INVALID'], (id) => invoke(id, TOOL, {})],
    ['an unknown resource over HTTP', ['http', undefined, 'RESOURCE_NOT_FOUND'], (id) => invoke(id, 'hidden', {})],
    [
      'an unknown resource over MCP',
      ['mcp', undefined, 'RESOURCE_NOT_FOUND'],
      (id) => post('/mcp', id, tool('hidden', {})),
    ],
    [
      'a body that is no JSON, over HTTP',
      ['http', undefined, 'INPUT_INVALID'],
      (id) => post('/api/resources/cities/invoke', id, '{'),
    ],
    ['a body that is no JSON, over MCP', ['mcp', undefined, '-32700'], (id) => post('/mcp', id, '{')],
    ['a body that is no JSON, over A2A', ['a2a', undefined, '-32700'], (id) => post('/a2a', id, '{')],
    [
      'a method of A2A that is not supported',
      ['a2a', undefined, '-32004'],
      (id) => post('/a2a', id, rpc('GetTask', { id: '1' })),
    ],
    ['a message that is no call', ['mcp', undefined, undefined], (id) => post('/mcp', id, rpc('tools/list', {}))],
    ['a request to no adapter', [undefined, undefined, 'NOT_FOUND'], (id) => post('/nowhere', id, '{}')],
  ];
  for (const [rule, shown, send, warns] of cases) {
    it(`${rule} is in its log line, and counted`, async () => {
      const [channel, resource, outcome] = shown;
      const counted = (): Promise<number> => countOf(resource ?? '', channel ?? '', outcome ?? '');
      const before = await counted();
      const id = `outcome-${randomUUID()}`;
      await (await send(id)).text().catch(() => 'broken off');
      const line = await lineOf(id);
      assert.deepEqual([line.channel, line.resource, line.outcome], shown);
      assert.equal(line.level === WARN, warns === 'warns');
      // The first purchase of a repeated one counts too, with another outcome.
      assert.equal((await counted()) - before, channel === undefined || outcome === undefined ? 0 : 1);
    });
  }

  it('comes with the transaction of a paid call, and with why a payment was refused', async () => {
    const settled = async (id: string) => {
      const { transaction, refusal } = await lineOf(id);
      return [transaction, refusal];
    };
    const paid = await invoke('with-transaction', TOOL, INPUT, await proof());
    const { transaction } = decodePaymentResponseHeader(paid.headers.get('payment-response') ?? '');
    assert.match(transaction, /^0x[0-9a-f]{64}$/);
    assert.deepEqual(await settled('with-transaction'), [transaction, undefined]);
    await invoke('refused', TOOL, INPUT, 'bm90aGluZw==');
    assert.deepEqual(await settled('refused'), [undefined, 'invalid_payload']);
    await invoke('unpaid', TOOL, INPUT);
    assert.deepEqual(await settled('unpaid'), [undefined, undefined]);
  });

  it('is client_gone for a caller that leaves before the answer, and in the middle of it', async () => {
    for (const [resource, input] of [
      ['free_silent', {}],
      ['free_slow', { chunks: 1000, everyMs: 20 }],
    ] as const) {
      const id = `gone-${resource}`;
      const headers = { 'content-type': 'application/json', 'x-request-id': id };
      const leaving = http.request(`${testbed().gateway.url}/api/resources/${resource}/invoke`, {
        method: 'POST',
        headers,
      });
      leaving.on('error', () => undefined);
      leaving.on('response', () => leaving.destroy());
      const reached = testbed().backend.nextRequest(resource === 'free_silent' ? '/silent' : '/slow');
      leaving.end(JSON.stringify(input));
      await reached;
      if (resource === 'free_silent') leaving.destroy();
      assert.equal((await lineOf(id)).outcome, 'client_gone');
      assert.equal(await countOf(resource, 'http', 'client_gone'), 1);
    }
  });
});
