import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { withX402Client } from 'agents/x402';
import {
  CLIENT_MODES,
  connectFirst,
  connectSecond,
  type Fetch,
  type McpClient,
  type ToolAnswer,
  type ToolCall,
} from '../../support/mcp-clients.ts';
import { buyTool, receiptOf, termsOf, withProof } from '../../support/mcp-payer.ts';
import {
  CITIES,
  MISFIT,
  NETWORK,
  openToolTestbed,
  PRICE_AMOUNT,
  PRICE_UNITS,
  SIMPLE_TEXT,
  TOOL_NAMES,
  type ToolTestbed,
} from './tool-testbed.ts';

const CARRIERS: Readonly<Record<string, (call: ToolCall, proof: PaymentPayload) => ToolCall>> = {
  'the payload as an object in _meta': withProof,
  'the payload as base64 in _meta': (call, proof) => withProof(call, encodePaymentSignatureHeader(proof)),
  'the argument _payment': (call, proof) => ({
    ...call,
    arguments: { ...call.arguments, _payment: encodePaymentSignatureHeader(proof) },
  }),
};
const WEATHER = { name: 'weather', arguments: { city: 'São Paulo' } } as const;
const DELIVERED = { city: 'São Paulo', celsius: 21 } as const;
const PAID_ONCE = { spent: PRICE_UNITS, earned: PRICE_UNITS, requests: 1 } as const;
const NOTHING = { spent: 0n, earned: 0n, requests: 0 } as const;

let testbed: ToolTestbed;
before(async () => {
  testbed = await openToolTestbed();
});
after(() => testbed?.close());

function envelopeOf({ isError, structuredContent, content }: ToolAnswer): { code?: string; details?: object } {
  assert.equal(isError, true);
  assert.deepEqual(JSON.parse(content[0]?.text ?? ''), structuredContent);
  return structuredContent ?? {};
}

for (const [name, { era, connect }] of Object.entries(CLIENT_MODES))
  describe(name, () => {
    let client: McpClient;
    const used = new Set<string>();
    let sent = 0;
    /** Sends each request to the next gateway, like a balancer without sticky sessions. */
    const balanced: Fetch = (_, init) => {
      const url = testbed.urls[sent % testbed.urls.length] ?? '';
      sent += 1;
      used.add(url);
      return fetch(url, init);
    };
    before(async () => {
      client = await connect(testbed.url, balanced);
      // After the list, clients validate answers with its schemas and repeat arguments in headers.
      await client.listTools();
    });
    after(async () => {
      await client?.close();
      assert.equal(used.size, testbed.urls.length, 'no gateway keeps a state');
    });

    it('lists the tools that are exposed over MCP, in the order of the configuration', async () => {
      const tools = await client.listTools();
      assert.deepEqual(
        tools.map((tool) => tool.name),
        TOOL_NAMES,
      );
    });

    it('reads the price of a paid tool in its description and in its _meta, and no word of it being read-only', async () => {
      const weather = (await client.listTools()).find((tool) => tool.name === 'weather');
      assert.match(weather?.description ?? '', /0\.01 USDC/);
      assert.equal(weather?._meta?.['agents-x402/paymentRequired'], true);
      assert.equal(weather?._meta?.['agents-x402/priceUSD'], PRICE_AMOUNT);
      assert.notEqual(weather?.annotations?.readOnlyHint, true);
    });

    it('sees output schemas in the modern era alone', async () => {
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

    it('gets a list as structured content in the form of its era', async () => {
      const { structuredContent } = await client.callTool({ name: 'city_list' });
      assert.deepEqual(structuredContent, era === 'modern' ? CITIES : { value: CITIES });
    });

    it('calls a tool whose arguments are mirrored in headers, in any script', async () => {
      const input = { region: 'Zürich, 東京', priority: 3, verbose: false, query: 'SELECT 1' };
      const { structuredContent } = await client.callTool({ name: 'regional_query', arguments: input });
      assert.deepEqual(structuredContent, input);
    });

    it('gets a tool error for invalid arguments', async () => {
      const answer = await client.callTool({ name: 'weather', arguments: { city: '' } });
      const { code, details } = envelopeOf(answer);
      assert.equal(code, 'INPUT_INVALID');
      assert.match(JSON.stringify(details), /\$\.city/);
    });

    it('gets a tool error for a failing backend', async () => {
      assert.equal(envelopeOf(await client.callTool({ name: 'test_error_handling' })).code, 'BACKEND_ERROR');
    });

    it('gets the protocol error -32602 for a tool that is unknown, or not exposed over MCP', async () => {
      for (const name of ['no_such_tool', 'http_only'])
        await assert.rejects(client.callTool({ name }), { code: -32602, message: /no such tool/ });
    });

    for (const [carrier, carry] of Object.entries(CARRIERS))
      it(`buys with ${carrier}: delivered with a receipt, and exactly the price moves`, async () => {
        const moved = await testbed.balances(async () => {
          const { terms, answer } = await buyTool(client, testbed.buyer.client, WEATHER, carry);
          assert.equal(terms.accepts[0]?.amount, String(PRICE_UNITS));
          assert.notEqual(answer.isError, true, JSON.stringify(answer));
          assert.deepEqual(answer.structuredContent, DELIVERED);
          assert.deepEqual(JSON.parse(answer.content[0]?.text ?? ''), answer.structuredContent);
          const receipt = receiptOf(answer);
          assert.deepEqual([receipt?.success, receipt?.network], [true, NETWORK]);
          assert.equal(receipt?.payer?.toLowerCase(), testbed.buyer.address.toLowerCase());
          assert.match(receipt?.transaction ?? '', /^0x[0-9a-f]{64}$/);
        });
        assert.deepEqual(moved, PAID_ONCE);
      });

    it('gets what it paid for although the answer does not fit the output schema', async () => {
      const moved = await testbed.balances(async () => {
        const { answer } = await buyTool(client, testbed.buyer.client, { name: 'misfit' });
        assert.deepEqual(JSON.parse(answer.content[0]?.text ?? ''), MISFIT);
        assert.equal(receiptOf(answer)?.success, true);
        // A success would make the client throw.
        const promised = era === 'modern';
        assert.equal(answer.isError ?? false, promised);
        assert.deepEqual(answer.structuredContent, promised ? undefined : MISFIT);
      });
      assert.deepEqual(moved, PAID_ONCE);
    });

    it('gets the terms again for a refused payment, with the reason and without content of the tool', async () => {
      const moved = await testbed.balances(async () => {
        const terms = termsOf(await client.callTool(WEATHER));
        const [offer] = terms.accepts;
        assert.ok(offer);
        // Signed for one unit less than the price.
        const cheaper = { ...terms, accepts: [{ ...offer, amount: String(PRICE_UNITS - 1n) }] };
        const proof = await testbed.buyer.client.createPaymentPayload(cheaper);
        const answer = await client.callTool(withProof(WEATHER, proof));
        const refused = termsOf(answer);
        assert.deepEqual(refused.accepts, terms.accepts);
        assert.notEqual(refused.error, terms.error);
        assert.doesNotMatch(JSON.stringify(answer), /celsius/);
      });
      assert.deepEqual(moved, NOTHING);
    });
  });

/** Clients that the Cloudflare agents wrap. */
const WRAPPED = {
  'the 1.x client': (url: string) => connectFirst(url),
  'the 2.x client': (url: string) => connectSecond(url),
  'the 2.x client that negotiates': (url: string) => connectSecond(url, 'auto'),
} as const;

for (const [name, connect] of Object.entries(WRAPPED))
  describe(`the Cloudflare agents around ${name}`, () => {
    const wrapped = async () => {
      const { account } = testbed.buyer;
      const client = withX402Client(await connect(testbed.url), { account, network: NETWORK });
      return { client, [Symbol.asyncDispose]: () => client.close() };
    };

    it('list what the tool costs in dollars', async () => {
      await using wallet = await wrapped();
      const { tools } = await wallet.client.listTools();
      const paid = tools.filter(({ description }) => description?.includes(`you will be charged $${PRICE_AMOUNT}`));
      assert.deepEqual(
        paid.map((tool) => tool.name),
        ['weather', 'misfit'],
      );
    });

    it('ask their user about the price, and pay; money moves once', async () => {
      await using wallet = await wrapped();
      const asked: PaymentRequirements[][] = [];
      const moved = await testbed.balances(async () => {
        const agree = async (accepts: PaymentRequirements[]): Promise<boolean> => asked.push(accepts) > 0;
        const answer: ToolAnswer = await wallet.client.callTool(agree, WEATHER);
        assert.deepEqual(answer.structuredContent, DELIVERED, JSON.stringify(answer));
        assert.equal(receiptOf(answer)?.success, true);
      });
      assert.deepEqual(moved, PAID_ONCE);
      assert.equal(asked.length, 1);
      const [offer] = asked[0] ?? [];
      assert.deepEqual([offer?.network, offer?.amount], [NETWORK, String(PRICE_UNITS)]);
    });

    it('pay nothing when their user declines', async () => {
      await using wallet = await wrapped();
      const moved = await testbed.balances(async () => {
        const answer: ToolAnswer = await wallet.client.callTool(async () => false, WEATHER);
        assert.equal(answer.isError, true);
      });
      assert.deepEqual(moved, NOTHING);
    });
  });
