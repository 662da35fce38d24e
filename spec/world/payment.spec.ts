import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { HTTPFacilitatorClient } from '@x402/core/http';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  relayTo,
  startHostileFacilitator,
} from '../support/hostile-facilitator.ts';

const NETWORK = 'eip155:31337';
const PRICE_UNITS = 10_000n;

describe('official buyer, official facilitator, own chain', () => {
  let chain: Chain;
  let facilitator: Facilitator;
  let hostile: HostileFacilitator;
  before(async () => {
    chain = await startChain();
    facilitator = await startFacilitator(chain);
    hostile = await startHostileFacilitator(NETWORK);
  });
  after(async () => {
    await hostile.stop();
    await facilitator.stop();
    await chain.stop();
  });

  /** What a server would offer, and what the buyer signs for it. */
  async function purchase(buyer: Buyer) {
    const { address, name, version } = chain.token;
    const payTo = privateKeyToAddress(generatePrivateKey());
    const requirements: PaymentRequirements = {
      scheme: 'exact',
      network: NETWORK,
      amount: String(PRICE_UNITS),
      asset: address,
      payTo,
      maxTimeoutSeconds: 120,
      extra: { name, version, assetTransferMethod: 'eip3009', paymentFlow: 'upfront' },
    };
    const header = await buyer.pay({
      x402Version: 2,
      resource: { url: 'http://127.0.0.1/x' },
      accepts: [requirements],
    });
    const payload = JSON.parse(Buffer.from(header, 'base64').toString()) as PaymentPayload;
    return { payTo, requirements, payload };
  }

  it('supports exact on the local chain', async () => {
    const { kinds } = await new HTTPFacilitatorClient({ url: facilitator.url }).getSupported();
    assert.ok(
      kinds.some(({ x402Version, scheme, network }) => x402Version === 2 && scheme === 'exact' && network === NETWORK),
    );
  });

  it('verifies and settles: the payer loses the price, the payee gains it', async () => {
    const buyer = await createBuyer(chain, 50_000n);
    const { payTo, requirements, payload } = await purchase(buyer);
    const client = new HTTPFacilitatorClient({ url: facilitator.url });
    const verdict = await client.verify(payload, requirements);
    assert.deepEqual([verdict.isValid, verdict.payer], [true, buyer.address]);
    const settled = await client.settle(payload, requirements);
    assert.equal(settled.success, true);
    assert.match(settled.transaction, /^0x[0-9a-f]{64}$/);
    assert.deepEqual([await buyer.balance(), await chain.balanceOf(payTo)], [50_000n - PRICE_UNITS, PRICE_UNITS]);
    assert.equal((await client.verify(payload, requirements)).isValid, false, 'a used proof');
  });

  it('refuses a payer without funds, and nothing moves', async () => {
    const { payTo, requirements, payload } = await purchase(await createBuyer(chain, PRICE_UNITS - 1n));
    const verdict = await new HTTPFacilitatorClient({ url: facilitator.url }).verify(payload, requirements);
    assert.equal(verdict.isValid, false);
    assert.equal(await chain.balanceOf(payTo), 0n);
  });

  it('the hostile facilitator approves everything, moves nothing and records its calls', async () => {
    const { payTo, requirements, payload } = await purchase(await createBuyer(chain, 0n));
    const client = new HTTPFacilitatorClient({ url: hostile.url });
    assert.equal((await client.verify(payload, requirements)).isValid, true);
    assert.equal((await client.settle(payload, requirements)).transaction, INVENTED_TRANSACTION);
    assert.equal(await chain.balanceOf(payTo), 0n);
    assert.deepEqual(
      hostile.calls.map(({ path }) => path),
      ['/verify', '/settle'],
    );
  });

  it('by script it settles for real and then breaks the connection', async () => {
    const { payTo, requirements, payload } = await purchase(await createBuyer(chain, PRICE_UNITS));
    hostile.script({
      settle: async (call) => {
        await relayTo(facilitator.url)(call);
        return { kind: 'reset' };
      },
    });
    await assert.rejects(new HTTPFacilitatorClient({ url: hostile.url }).settle(payload, requirements));
    hostile.script({});
    assert.equal(await chain.balanceOf(payTo), PRICE_UNITS);
  });

  const oddities = [
    ['an unreadable answer', { kind: 'text', type: 'text/html', body: '<p>busy</p>' }, 200],
    ['a verdict in a 503', { kind: 'json', status: 503, body: { isValid: true } }, 503],
    ['a redirect', { kind: 'redirect', location: 'http://127.0.0.1:1/' }, 302],
  ] as const;
  for (const [what, answer, status] of oddities) {
    it(`by script it gives ${what}`, async () => {
      hostile.script({ verify: () => answer });
      const response = await fetch(`${hostile.url}/verify`, { method: 'POST', body: '{}', redirect: 'manual' });
      hostile.script({});
      assert.equal(response.status, status);
    });
  }
});
