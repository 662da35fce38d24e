import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload } from '@x402/core/types';
import { CLIENT_MODES, type McpClient, type ToolAnswer, type ToolCall } from '../../support/mcp-clients.ts';
import { CITIES, MISFIT, SIMPLE_TEXT } from '../../support/mcp-merchant.ts';
import { buyTool, receiptOf, withProof } from '../../support/mcp-payer.ts';
import { type McpSeller, openMcpSeller } from '../../support/mcp-seller.ts';
import { PRICE_AMOUNT, PRICE_UNITS, TOOL_NAMES } from '../../support/mcp-shop.ts';

const CARRIERS: Readonly<Record<string, (call: ToolCall, proof: PaymentPayload) => ToolCall>> = {
  'the payload as an object in _meta': withProof,
  'the payload as base64 in _meta': (call, proof) => withProof(call, encodePaymentSignatureHeader(proof)),
  'the argument _payment': (call, proof) => ({
    ...call,
    arguments: { ...call.arguments, _payment: encodePaymentSignatureHeader(proof) },
  }),
};
const SOLD_ONCE = { spent: PRICE_UNITS, earned: PRICE_UNITS, requests: 1 } as const;

let seller: McpSeller;
before(async () => {
  seller = await openMcpSeller();
});
after(() => seller?.close());

function envelopeOf({ isError, structuredContent, content }: ToolAnswer): { code?: string; details?: object } {
  assert.equal(isError, true);
  assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structuredContent);
  return structuredContent ?? {};
}

for (const [name, { era, connect }] of Object.entries(CLIENT_MODES))
  describe(name, () => {
    let client: McpClient;
    before(async () => {
      client = await connect(seller.url);
      // From the list on, clients hold answers against what was promised, and repeat arguments in
      // headers.
      await client.listTools();
    });
    after(() => client?.close());

    it('lists what is offered over MCP, in the order of the configuration', async () => {
      const tools = await client.listTools();
      assert.deepEqual(
        tools.map((tool) => tool.name),
        TOOL_NAMES,
      );
    });

    it('reads the price of a paid tool in its description and in its _meta, and that it is not read-only', async () => {
      const weather = (await client.listTools()).find((tool) => tool.name === 'weather');
      assert.match(weather?.description ?? '', /0\.01 USDC/);
      const pricing = { type: 'fixed', amount: PRICE_AMOUNT, currency: 'USDC' };
      assert.deepEqual(weather?._meta?.['agent-commerce/pricing'], pricing);
      assert.equal(weather?._meta?.['agents-x402/paymentRequired'], true);
      assert.equal(weather?.annotations?.readOnlyHint, false);
    });

    it('sees output schemas in the modern era alone: one whose root is no object ends a legacy list', async () => {
      const promising = (await client.listTools()).filter((tool) => tool.outputSchema !== undefined);
      assert.deepEqual(
        promising.map((tool) => tool.name),
        era === 'modern' ? ['city_list', 'weather', 'misfit'] : [],
      );
    });

    it('calls a free tool without arguments', async () => {
      const { content, isError } = await client.callTool({ name: 'test_simple_text' });
      assert.deepEqual(content, [{ type: 'text', text: SIMPLE_TEXT }]);
      assert.notEqual(isError, true);
    });

    it('gets a list as structured content that its era can hold', async () => {
      const { structuredContent } = await client.callTool({ name: 'city_list' });
      assert.deepEqual(structuredContent, era === 'modern' ? CITIES : { value: CITIES });
    });

    it('calls a tool whose arguments are mirrored in headers, in any script', async () => {
      const input = { region: 'Zürich, 東京', priority: 3, verbose: false, query: 'SELECT 1' };
      const { structuredContent } = await client.callTool({ name: 'regional_query', arguments: input });
      assert.deepEqual(structuredContent, input);
    });

    it('hears of invalid arguments as a tool error that the model can read', async () => {
      const answer = await client.callTool({ name: 'weather', arguments: { city: '' } });
      const { code, details } = envelopeOf(answer);
      assert.equal(code, 'INPUT_INVALID');
      assert.match(JSON.stringify(details), /\$\.city/);
    });

    it('hears of a failing merchant as a tool error', async () => {
      assert.equal(envelopeOf(await client.callTool({ name: 'test_error_handling' })).code, 'BACKEND_ERROR');
    });

    for (const [what, tool] of Object.entries({ unknown: 'no_such_tool', 'not offered over MCP': 'http_only' }))
      it(`hears of a tool that is ${what} as the protocol error -32602`, async () => {
        await assert.rejects(client.callTool({ name: tool }), { code: -32602, message: /no such tool/ });
      });

    for (const [carrier, carry] of Object.entries(CARRIERS))
      it(`buys with ${carrier}: delivered with a receipt, and exactly the price moves`, async () => {
        const call = { name: 'weather', arguments: { city: 'São Paulo' } };
        const moved = await seller.balances(async () => {
          const { answer } = await buyTool(client, seller.buyer.client, call, carry);
          assert.notEqual(answer.isError, true, JSON.stringify(answer));
          assert.deepEqual(answer.structuredContent, { city: 'São Paulo', celsius: 21 });
          assert.deepEqual(JSON.parse(answer.content[0]?.text ?? ''), answer.structuredContent);
          const receipt = receiptOf(answer);
          assert.equal(receipt?.success, true);
          assert.equal(receipt?.payer?.toLowerCase(), seller.buyer.address.toLowerCase());
          assert.match(receipt?.transaction ?? '', /^0x[0-9a-f]{64}$/);
        });
        assert.deepEqual(moved, SOLD_ONCE);
      });

    it('gets what it paid for although the merchant breaks the promised schema', async () => {
      const moved = await seller.balances(async () => {
        const { answer } = await buyTool(client, seller.buyer.client, { name: 'misfit' });
        assert.deepEqual(JSON.parse(answer.content[0]?.text ?? ''), MISFIT);
        assert.equal(receiptOf(answer)?.success, true);
        // A success would make the client throw, with the data in its exception.
        const promised = era === 'modern';
        assert.equal(answer.isError ?? false, promised);
        assert.deepEqual(answer.structuredContent, promised ? undefined : MISFIT);
      });
      assert.deepEqual(moved, SOLD_ONCE);
    });
  });
