import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodePaymentSignatureHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { type PaymentRequired, x402Client } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { TEST_BUYER } from '../../src/payments/pricing/networks.ts';
import { CURRENCY, NO_CHAIN } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { baseSepolia } from '../support/mcp-usdc.ts';
import { quoteOf } from '../support/testbed.ts';

const RESOURCE = 'market_report';
const INPUT = { city: 'Berlin' };

describe('a gateway on Base Sepolia', () => {
  let gateway: TestGateway;
  before(async () => {
    const { payments } = baseSepolia() as { readonly payments: { readonly x402: object } };
    gateway = await openGateway({
      chain: NO_CHAIN,
      backendUrl: 'http://127.0.0.1:9',
      facilitator: { mode: 'remote', url: 'http://127.0.0.1:1' },
      overrides: {
        payments: { x402: { ...payments.x402, currency: CURRENCY, rpcUrl: undefined } },
      },
    });
  });
  after(() => gateway?.close());

  const answerTo = async (key: `0x${string}`): Promise<Response> => {
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(key)));
    const { body } = await quoteOf(gateway, RESOURCE, INPUT);
    const payload = await client.createPaymentPayload(body.payment.envelope as unknown as PaymentRequired);
    return gateway.invoke(RESOURCE, INPUT, { 'payment-signature': encodePaymentSignatureHeader(payload) });
  };

  it('refuses the TEST buyer of the local world, with a reason of its own', async () => {
    const response = await answerTo(TEST_BUYER.key);
    assert.equal(response.status, 402);
    const { error } = (await response.json()) as {
      readonly error: { readonly reason: string; readonly message: string };
    };
    assert.equal(error.reason, 'test_payer_not_allowed');
    assert.match(error.message, /the key of this payer is public, for development on eip155:31337/);
  });

  it('has nothing against any other payer: its payment passes these checks, and comes as far as peers that are away', async () => {
    assert.equal((await answerTo(generatePrivateKey())).status, 503);
  });
});
