import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { extractDiscoveryInfo } from '@x402/extensions/bazaar';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { BASE_SEPOLIA, NO_CHAIN } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { CLIENT_MODES } from '../support/mcp-clients.ts';
import { buyTool } from '../support/mcp-payer.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

const BERLIN = { city: 'Berlin' } as const;
const DESCRIPTION = 'Prices and volumes of one city';
/** Overrides under which the report is listed with this example. */
const listedWith = (example: object) => ({
  resources: {
    market_report: { description: DESCRIPTION, expose: ['http', 'mcp', 'a2a', 'origin'], bazaar: { example } },
  },
});

/** A payment as the facilitator got it. */
interface Processed {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

describe('a facilitator that catalogues what it processes', () => {
  let backend: SampleBackend;
  let facilitator: HostileFacilitator;
  let gateway: TestGateway;
  let buyer: Buyer;
  let base: string;

  before(async () => {
    backend = await startSampleBackend();
    facilitator = await startHostileFacilitator(BASE_SEPOLIA.network);
    gateway = await openGateway({
      chain: NO_CHAIN,
      backendUrl: backend.url,
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: {
        payments: { x402: BASE_SEPOLIA },
        protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
        ...listedWith(BERLIN),
      },
    });
    base = gateway.config.merchant.publicBaseUrl;
    buyer = await createBuyer({ mint: async () => undefined, balanceOf: async () => 0n }, 0n);
  });
  after(async () => {
    await gateway?.close();
    await Promise.all([backend?.stop(), facilitator?.stop()]);
  });

  /** What the official code makes of every request of a purchase, which are alike in it. */
  async function catalogued(purchase: () => Promise<unknown>) {
    const before = facilitator.calls.length;
    await purchase();
    const calls = facilitator.calls.slice(before).filter(({ path }) => path !== '/supported');
    assert.deepEqual(
      calls.map(({ path }) => path),
      ['/verify', '/settle'],
    );
    const found = calls.map(({ body }) => {
      const { paymentPayload, paymentRequirements } = body as Processed;
      return { entry: extractDiscoveryInfo(paymentPayload, paymentRequirements), sent: paymentPayload.extensions };
    });
    assert.deepEqual(found[0], found[1]);
    return { entry: found[0]?.entry ?? assert.fail('nothing to catalogue'), sent: found[0]?.sent };
  }

  /** The 402 of an answer. */
  const offered = (answer: Response): PaymentRequired => {
    assert.equal(answer.status, 402);
    return decodePaymentRequiredHeader(answer.headers.get('payment-required') ?? '');
  };
  const header = async (terms: unknown) => ({ 'payment-signature': await buyer.pay(terms) });

  it('lists the invoke URL of a purchase there, as its 402 described it', async () => {
    const terms = offered(await gateway.invoke('market_report', BERLIN));
    const { entry, sent } = await catalogued(async () => {
      const answer = await gateway.invoke('market_report', BERLIN, await header(terms));
      assert.equal(answer.status, 200, await answer.text());
    });
    assert.equal(entry.resourceUrl, `${base}/api/resources/market_report/invoke`);
    assert.deepEqual([entry.description, entry.mimeType], [DESCRIPTION, 'application/json']);
    assert.deepEqual(entry.discoveryInfo.input, { type: 'http', method: 'POST', bodyType: 'json', body: BERLIN });
    assert.deepEqual(sent, { bazaar: terms.extensions?.['bazaar'] });
  });

  for (const [name, { connect }] of Object.entries(CLIENT_MODES))
    it(`lists the tool of a purchase by ${name}`, async () => {
      const client = await connect(`${gateway.url}/mcp`);
      try {
        const { entry, sent } = await catalogued(async () => {
          const call = { name: 'market_report', arguments: BERLIN };
          const { terms, answer } = await buyTool(client, buyer.client, call);
          assert.notEqual(answer.isError, true, JSON.stringify(answer));
          assert.deepEqual(Object.keys(terms.extensions ?? {}), [
            'payment-identifier',
            'bazaar',
            'agent-commerce-buyer',
          ]);
        });
        assert.equal(entry.resourceUrl, `${base}/mcp`);
        assert.equal('toolName' in entry && entry.toolName, 'market_report');
        assert.deepEqual(Object.keys(sent ?? {}), ['bazaar']);
      } finally {
        await client.close();
      }
    });

  it('lists what a client has bought that echoed nothing, and in our words what one has changed', async () => {
    for (const change of [undefined, { bazaar: { info: { input: { type: 'http', method: 'GET' } }, schema: {} } }]) {
      const { extensions, ...terms } = offered(await gateway.invoke('market_report', BERLIN));
      const { sent } = await catalogued(async () => {
        const answer = await gateway.invoke('market_report', BERLIN, await header({ ...terms, extensions: change }));
        assert.equal(answer.status, 200, await answer.text());
      });
      assert.deepEqual(sent, { bazaar: extensions?.['bazaar'] });
    }
  });
});
