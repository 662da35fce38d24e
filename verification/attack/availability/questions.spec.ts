import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HostileFacilitator, startHostileFacilitator } from '../../../spec/support/hostile-facilitator.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { BLENDS, blendsOf, SERVED } from './blend.ts';
import { type NextCall, writeCalls } from './questions.ts';
import { type WireAnswer, WireClient } from './wire-client.ts';

/** Four blends of ten. */
const CALLS = 40;
const PAID_CALLS = 4;
const NETWORK = 'eip155:31337';

describe('the calls of a load', () => {
  let facilitator: HostileFacilitator;
  let testbed: Testbed;
  let client: WireClient;
  before(async () => {
    facilitator = await startHostileFacilitator(NETWORK);
    testbed = await openTestbed({
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: { payments: { x402: { confirm: 'facilitator' } } },
    });
    const { hostname, port } = new URL(testbed.gateway.url);
    client = new WireClient(hostname, Number(port));
  });
  after(async () => {
    client.close();
    await testbed.close();
    await facilitator.stop();
  });

  const calls = (): Promise<NextCall> =>
    writeCalls({
      ...{ origin: testbed.gateway.url, path: '/api/resources/cities/invoke', body: '{}' },
      priced: { path: '/api/resources/price_list/invoke', blend: BLENDS.mix, proofs: PAID_CALLS },
      ...{ connections: 1, seconds: 1, shape: { kind: 'closed' } },
    });
  const ask = (request: Buffer): Promise<WireAnswer> =>
    new Promise((resolve, reject) =>
      client.ask(request, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
    );

  it('have the share of each kind and are all served, the paid ones with a fresh proof', async () => {
    const next = await calls();
    const asked = { free: 0, challenge: 0, paid: 0 };
    for (let at = 0; at < CALLS; at += 1) {
      const call = next();
      assert.ok(call !== undefined);
      const { status, head } = await ask(call.request);
      assert.equal(status, SERVED[call.kind], `${call.kind}: ${head}`);
      asked[call.kind] += 1;
    }
    assert.deepEqual(asked, { free: 28, challenge: 8, paid: PAID_CALLS });
    assert.equal(facilitator.calls.filter(({ path }) => path === '/settle').length, PAID_CALLS);
  });

  it('end when no proof is left: none is sent twice', async () => {
    const next = await calls();
    const paidAt = BLENDS.mix.indexOf('paid');
    const rounds = Array.from({ length: PAID_CALLS + 1 }, () => BLENDS.mix.map(() => next()?.kind)[paidAt]);
    assert.deepEqual(rounds, [...Array.from({ length: PAID_CALLS }, () => 'paid'), undefined]);
  });

  it('have blends with names', () => {
    assert.deepEqual(blendsOf('all'), ['free', 'challenge', 'paid', 'mix']);
    assert.deepEqual(blendsOf('mix'), ['mix']);
    assert.throws(() => blendsOf('mcp'), /mcp is none of free, challenge, paid, mix, all/);
  });
});
