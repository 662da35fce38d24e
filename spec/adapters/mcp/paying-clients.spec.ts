import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PaymentRequirements } from '@x402/core/types';
import { withX402Client } from 'agents/x402';
import { CLIENT_MODES, connectFirst, connectSecond, type ToolAnswer } from '../../support/mcp-clients.ts';
import { buyTool, receiptOf, termsOf, withProof } from '../../support/mcp-payer.ts';
import { type McpSeller, openMcpSeller } from '../../support/mcp-seller.ts';
import { PRICE_AMOUNT, PRICE_UNITS } from '../../support/mcp-shop.ts';
import { NETWORK } from '../../support/mcp-usdc.ts';

const WEATHER = { name: 'weather', arguments: { city: 'Lisboa' } } as const;
const DELIVERED = { city: 'Lisboa', celsius: 21 } as const;
const SOLD_ONCE = { spent: PRICE_UNITS, earned: PRICE_UNITS, requests: 1 } as const;
const NOTHING = { spent: 0n, earned: 0n, requests: 0 } as const;

let seller: McpSeller;
before(async () => {
  seller = await openMcpSeller();
});
after(() => seller?.close());

/** Clients that the Cloudflare agents wrap. */
const WRAPPED = {
  'the 1.x client': (url: string) => connectFirst(url),
  'the 2.x client': (url: string) => connectSecond(url),
  'the 2.x client that negotiates': (url: string) => connectSecond(url, 'auto'),
} as const;

for (const [name, connect] of Object.entries(WRAPPED))
  describe(`the Cloudflare agents around ${name}`, () => {
    const wrapped = async () => {
      const { account } = seller.buyer;
      const client = withX402Client(await connect(seller.url), { account, network: NETWORK });
      return { client, [Symbol.asyncDispose]: () => client.close() };
    };

    it('say in the list what the tool costs in dollars', async () => {
      await using wallet = await wrapped();
      const { tools } = await wallet.client.listTools();
      const paid = tools.filter(({ description }) => description?.includes(`you will be charged $${PRICE_AMOUNT}`));
      assert.deepEqual(
        paid.map((tool) => tool.name),
        ['weather', 'misfit'],
      );
    });

    it('ask their user about the price and pay by themselves; money moves once', async () => {
      await using wallet = await wrapped();
      const asked: PaymentRequirements[][] = [];
      const moved = await seller.balances(async () => {
        const agree = async (accepts: PaymentRequirements[]): Promise<boolean> => asked.push(accepts) > 0;
        const answer: ToolAnswer = await wallet.client.callTool(agree, WEATHER);
        assert.deepEqual(answer.structuredContent, DELIVERED, JSON.stringify(answer));
        assert.equal(receiptOf(answer)?.success, true);
      });
      assert.deepEqual(moved, SOLD_ONCE);
      assert.equal(asked.length, 1);
      const [offer] = asked[0] ?? [];
      assert.deepEqual([offer?.network, offer?.amount], [NETWORK, String(PRICE_UNITS)]);
    });

    it('pay nothing when their user declines', async () => {
      await using wallet = await wrapped();
      const moved = await seller.balances(async () => {
        const answer: ToolAnswer = await wallet.client.callTool(async () => false, WEATHER);
        assert.equal(answer.isError, true);
      });
      assert.deepEqual(moved, NOTHING);
    });
  });

for (const [name, { connect }] of Object.entries(CLIENT_MODES))
  describe(`a client of the published x402 transport for MCP, on ${name}`, () => {
    const opened = async () => {
      const client = await connect(seller.url);
      return { client, [Symbol.asyncDispose]: () => client.close() };
    };

    it('finds valid terms, pays with an object and finds the settlement', async () => {
      await using agent = await opened();
      const moved = await seller.balances(async () => {
        const { terms, answer } = await buyTool(agent.client, seller.buyer.client, WEATHER);
        assert.equal(terms.accepts[0]?.amount, String(PRICE_UNITS));
        assert.deepEqual(answer.structuredContent, DELIVERED);
        const receipt = receiptOf(answer);
        assert.equal(receipt?.success, true);
        assert.equal(receipt?.network, NETWORK);
      });
      assert.deepEqual(moved, SOLD_ONCE);
    });

    it('hears of a refused payment as the terms again, with the reason and without content of the tool', async () => {
      await using agent = await opened();
      const moved = await seller.balances(async () => {
        const terms = termsOf(await agent.client.callTool(WEATHER));
        const [offer] = terms.accepts;
        assert.ok(offer);
        // Signed for one unit less than it costs.
        const cheaper = { ...terms, accepts: [{ ...offer, amount: String(PRICE_UNITS - 1n) }] };
        const proof = await seller.buyer.client.createPaymentPayload(cheaper);
        const answer = await agent.client.callTool(withProof(WEATHER, proof));
        const refused = termsOf(answer);
        assert.deepEqual(refused.accepts, terms.accepts);
        assert.notEqual(refused.error, terms.error);
        assert.doesNotMatch(JSON.stringify(answer), /celsius/);
      });
      assert.deepEqual(moved, NOTHING);
    });
  });
