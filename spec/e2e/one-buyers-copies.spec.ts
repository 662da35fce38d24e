import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { createBuyer } from '../support/buyer.ts';
import { buy } from '../support/purchase.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

/**
 * Connections that bring one proof; ACG_COPIES=700 is what an attacker opens against the 512 slots
 * of a process.
 */
const CONNECTIONS = Number(process.env['ACG_COPIES'] ?? 60);
const OTHER_BUYERS = Number(process.env['ACG_BUYERS'] ?? 3);
/** Fewer slots than copies, as 512 are fewer than 700. */
const SLOTS = Number(process.env['ACG_PLACES'] ?? 30);

describe('one proof on many connections', () => {
  let testbed: Testbed;
  const agent = new http.Agent({ keepAlive: true });
  before(async () => {
    testbed = await openTestbed({ overrides: { limits: { maxInFlight: SLOTS } } });
  });
  after(async () => {
    agent.destroy();
    await testbed?.close();
  });

  const send = (proof: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'payment-signature': proof };
      const request = http.request(`${testbed.gateway.url}/api/resources/held/invoke`, {
        method: 'POST',
        agent,
        headers,
      });
      request.on('response', (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
      });
      request.on('error', reject);
      request.end('{}');
    });

  it('all other buyers are served while its copies are repeated', async (context) => {
    const { gateway, backend, chain } = testbed;
    const proof = await testbed.proof('held');
    const buyers = await Promise.all(Array.from({ length: OTHER_BUYERS }, () => createBuyer(chain)));
    backend.hold();
    const arrived = backend.nextRequest('/held');
    const running = send(proof).catch(() => 0);
    await arrived;
    let attacking = true;
    const seen = new Map<number, number>();
    const copies = Array.from({ length: CONNECTIONS }, async () => {
      while (attacking) {
        const status = await send(proof).catch(() => 0);
        seen.set(status, (seen.get(status) ?? 0) + 1);
      }
    });
    try {
      for (const buyer of buyers) {
        const bought = await insist(() => buy(buyer, gateway.url, 'market_report', '{"city":"Berlin"}'));
        assert.equal(bought.status, 200);
      }
    } finally {
      attacking = false;
      backend.release();
    }
    await Promise.all([running, ...copies]);
    context.diagnostic(`${CONNECTIONS} connections, answers ${JSON.stringify(Object.fromEntries(seen))}`);
    assert.ok((seen.get(409) ?? 0) > CONNECTIONS, 'copies beyond the first few got a Retry-After');
  });
});

/**
 * Repeats as a client does that gets a Retry-After of one second; a final refusal ends the test.
 */
async function insist<T>(attempt: () => Promise<T>): Promise<T> {
  const ends = performance.now() + 30_000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > ends || !String(error).includes('GATEWAY_BUSY')) throw error;
    }
  }
}
