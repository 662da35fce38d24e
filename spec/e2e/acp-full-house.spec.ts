import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertAcpError, checkoutProtocol, SEALED } from '../adapters/acp/testbed.ts';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import { startCheckoutGateway } from '../support/acp/gateway.ts';
import { createBuyer } from '../support/buyer.ts';
import { connectFirst } from '../support/mcp-clients.ts';
import { startWorld, type World } from '../support/world.ts';
import { assistantAt, documentIn, paymentWith } from './acp-assistant.ts';

describe('a checkout beside the other channels of one process', () => {
  let backend: CheckoutBackend;
  let world: World;
  before(async () => {
    backend = await startCheckoutBackend();
    const acp = checkoutProtocol({ backend: { baseUrl: backend.url } });
    world = await startWorld({
      overrides: { storage: SEALED, protocols: { mcp: { enabled: true }, a2a: { enabled: true }, acp } },
    });
  });
  after(async () => {
    await world?.stop();
    await backend?.stop();
  });

  it('completes while a resource is bought over HTTP, listed over MCP and called over A2A', async () => {
    const { baseUrl } = world.gateway;
    const buyer = await createBuyer(world.chain);
    const assistant = assistantAt(() => baseUrl);
    const checkout = async () => {
      const path = await assistant.open();
      return documentIn(await assistant.post(`${path}/complete`, paymentWith('tok_1')), 200)['status'];
    };
    const bought = async () => {
      const headers = { 'content-type': 'application/json' };
      const request = { method: 'POST', headers, body: JSON.stringify({ city: 'Berlin' }) };
      return (await buyer.fetch(`${baseUrl}/api/resources/market_report/invoke`, request)).status;
    };
    const called = async () => {
      const client = await connectFirst(`${baseUrl}/mcp`);
      const { isError } = await client.callTool({ name: 'cities', arguments: {} });
      await client.close();
      return isError ?? false;
    };
    const sent = async () => {
      const parts = [{ data: { resource: 'cities', input: {} }, mediaType: 'application/json' }];
      const params = { message: { messageId: 'message-1', role: 'ROLE_USER', parts } };
      const answer = await fetch(`${baseUrl}/a2a`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
      });
      return 'result' in ((await answer.json()) as object);
    };
    assert.deepEqual(await Promise.all([checkout(), bought(), called(), sent(), checkout()]), [
      'completed',
      200,
      false,
      true,
      'completed',
    ]);
    assert.equal(backend.allOrders(), 2);
  });

  it('is one of the adapters, with a health of its own', async () => {
    const { adapters } = (await (await fetch(`${world.gateway.baseUrl}/ready`)).json()) as {
      readonly adapters: readonly { readonly name: string; readonly status: string }[];
    };
    assert.deepEqual(
      adapters.map(({ name, status }) => [name, status]),
      ['http', 'mcp', 'a2a', 'acp'].map((name) => [name, 'pass']),
    );
  });
});

describe('a checkout at an overloaded gateway', () => {
  it('is refused with an ACP error and Retry-After', async () => {
    const backend = await startCheckoutBackend();
    const gateway = await startCheckoutGateway({
      backendUrl: backend.url,
      acp: { limits: { maxInFlight: 1 } },
      overrides: { limits: { rate: { perSecond: 1, burst: 12 } } },
    });
    try {
      const assistant = assistantAt(() => gateway.url);
      const path = await assistant.open();
      const { promise, resolve } = Promise.withResolvers<void>();
      backend.misbehave({ kind: 'wait', acts: 'after', until: promise });
      const arrived = backend.arrived();
      const first = assistant.post(`${path}/complete`, paymentWith('tok_1'), 'first');
      await arrived;
      const shed = await assistant.post(`${path}/complete`, paymentWith('tok_1'), 'shed');
      assertAcpError(shed, 503, 'service_unavailable');
      assert.equal(shed.headers['retry-after'], '1');
      resolve();
      assert.equal((await first).status, 200);
      // Nothing of the shed call was kept: its key takes another body.
      const other = await assistant.post(`${path}/complete`, paymentWith('tok_2'), 'shed');
      assertAcpError(other, 409, 'checkout_session_conflict');
      const many = await Promise.all(Array.from({ length: 20 }, () => assistant.get(path)));
      const limited = many.filter(({ status }) => status === 429);
      assert.ok(limited.length > 0);
      for (const answer of limited) {
        assertAcpError(answer, 429, 'rate_limited');
        assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
      }
    } finally {
      await gateway.stop();
      await backend.stop();
    }
  });
});
