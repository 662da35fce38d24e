import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Fault, startFaultyNode } from '../payments/x402/stage.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import type { HttpServer } from '../support/http-server.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

const RESOURCE = 'market_report';
const INPUT = { city: 'Berlin' };
/** What it costs, and what a buyer has. */
const PRICE_UNITS = 10_000n;
const FUNDS = 100n * PRICE_UNITS;
/** The readings before a transaction is signed. */
const READINGS = ['eth_call', 'eth_getTransactionCount', 'eth_getBlockByNumber', 'eth_maxPriorityFeePerGas'];

describe('a chain node that fails readings', () => {
  let chain: Chain;
  let backend: SampleBackend;
  let node: HttpServer;
  let gateway: TestGateway;
  let buyer: Buyer;
  /** The calls of a method that fail from now on. */
  let failing: { method: string; left: number; fault: Fault };
  const fault = (method: string): Fault => {
    if (method !== failing.method || failing.left === 0) return 'pass';
    failing.left -= 1;
    return failing.fault;
  };
  before(async () => {
    failing = { method: '', left: 0, fault: 'pass' };
    [chain, backend] = await Promise.all([startChain(), startSampleBackend()]);
    [node, buyer] = await Promise.all([startFaultyNode(chain.rpcUrl, fault), createBuyer(chain, FUNDS)]);
    gateway = await openGateway({
      chain: { ...chain, rpcUrl: node.url },
      backendUrl: backend.url,
      facilitator: { mode: 'local' },
    });
  });
  after(async () => {
    await gateway.close();
    await Promise.all([node.stop(), backend.stop(), chain.stop()]);
  });
  const signed = async (shop: TestGateway = gateway): Promise<string> => {
    const { payment } = (await (await shop.invoke(RESOURCE, INPUT)).json()) as { payment: { envelope: unknown } };
    return buyer.pay(payment.envelope);
  };
  const bring = (proof: string, shop: TestGateway = gateway) =>
    shop.invoke(RESOURCE, INPUT, { 'payment-signature': proof });

  for (const method of READINGS)
    it(`one failure of ${method} of any kind is overcome`, async () => {
      for (const kind of ['reset', 'limit', 'busy', 'broken', 'fail'] as const) {
        const proof = await signed();
        failing = { method, left: 1, fault: kind };
        assert.equal((await bring(proof)).status, 200, kind);
      }
    });

  it('a reading that keeps failing ends with 503, no money moves, and the same proof buys later', async () => {
    const held = await buyer.balance();
    const proof = await signed();
    failing = { method: 'eth_getTransactionCount', left: Number.POSITIVE_INFINITY, fault: 'limit' };
    const refused = await bring(proof);
    const body = (await refused.json()) as { readonly code: string; readonly message: string };
    assert.deepEqual([refused.status, body.code], [503, 'PAYMENT_PROVIDER_UNAVAILABLE']);
    assert.match(body.message, /moved no money/);
    assert.equal(refused.headers.get('payment-response'), null);
    assert.ok(
      gateway.logLines.some((line) => /PAYMENT_PROVIDER_UNAVAILABLE/.test(line) && /rate limited/.test(line)),
      'the log has the cause',
    );
    assert.equal(await buyer.balance(), held);
    failing.left = 0;
    assert.equal((await bring(proof)).status, 200);
    assert.equal(held - (await buyer.balance()), PRICE_UNITS);
  });

  it('another node of rpcUrls serves while the first one is away', async () => {
    const overrides = { payments: { x402: { rpcUrl: 'http://127.0.0.1:1', rpcUrls: [chain.rpcUrl] } } };
    const shop = await openGateway({ chain, backendUrl: backend.url, facilitator: { mode: 'local' }, overrides });
    try {
      assert.equal((await bring(await signed(shop), shop)).status, 200);
    } finally {
      await shop.close();
    }
  });
});
