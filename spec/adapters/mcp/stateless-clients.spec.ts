import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CLIENT_MODES, type Fetch, type McpClient } from '../../support/mcp-clients.ts';
import { buyTool, receiptOf, withProof } from '../../support/mcp-payer.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { openToolTestbed, PRICE_UNITS, SIMPLE_TEXT, TOOL_NAMES, type ToolTestbed } from './tool-testbed.ts';

const WEATHER = { name: 'weather', arguments: { city: 'Berlin' } } as const;
const PAID_ONCE = { spent: PRICE_UNITS, earned: PRICE_UNITS, requests: 1 } as const;

let redis: TestRedis;
let testbed: ToolTestbed;
before(async () => {
  redis = await startRedis();
  testbed = await openToolTestbed({ storage: { redis: { url: redis.url } }, gateways: 2 });
});
after(async () => {
  await testbed?.close();
  await redis?.stop();
});

/** Sends each request to the next gateway, like a balancer without sticky sessions. */
function balancer(urls: readonly string[]): { readonly fetch: Fetch; readonly used: readonly string[] } {
  const used: string[] = [];
  const send: Fetch = (_, init) => {
    const url = urls[used.length % urls.length] ?? '';
    used.push(url);
    return fetch(url, init);
  };
  return { fetch: send, used };
}

for (const [name, { connect }] of Object.entries(CLIENT_MODES))
  describe(`${name}, whose every request reaches another gateway`, () => {
    let client: McpClient;
    let route: ReturnType<typeof balancer>;
    before(async () => {
      route = balancer(testbed.urls);
      client = await connect(testbed.url, route.fetch);
    });
    after(() => client?.close());

    it('lists and calls tools without a state in any gateway', async () => {
      // Some clients cache the list, so the number of requests differs.
      for (let round = 0; round < 3; round += 1) {
        const tools = await client.listTools();
        assert.equal(tools.length, TOOL_NAMES.length);
        const { content } = await client.callTool({ name: 'test_simple_text' });
        assert.equal(content[0]?.text, SIMPLE_TEXT);
      }
      assert.deepEqual([...new Set(route.used)].sort(), [...testbed.urls].sort());
    });

    it('pays one gateway for the challenge of another, and money moves once', async () => {
      const moved = await testbed.balances(async () => {
        const { proof, answer } = await buyTool(client, testbed.buyer.client, WEATHER);
        assert.equal(receiptOf(answer)?.success, true, JSON.stringify(answer));
        const [challenged, paid] = route.used.slice(-2);
        assert.notEqual(challenged, paid);
        // The proof comes a second time, as it is public in the block, to the other gateway.
        const { extensions: _token, ...found } = proof;
        const again = await client.callTool(withProof(WEATHER, found));
        assert.equal(again.isError, true);
        assert.equal((again.structuredContent as { code?: string }).code, 'PAYMENT_REPLAYED', JSON.stringify(again));
      });
      assert.deepEqual(moved, PAID_ONCE);
    });
  });
