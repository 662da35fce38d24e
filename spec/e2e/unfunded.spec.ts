import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { privateKeyToAddress } from 'viem/accounts';
import { eventually } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { INPUT, message, TOOL, tool } from '../telemetry/callers.ts';
import { scrape } from '../telemetry/scrape.ts';

const CHANNELS = ['http', 'mcp', 'a2a'] as const;
type Channel = (typeof CHANNELS)[number];
/** What `market_report` costs. */
const PRICE_UNITS = 10_000n;

interface Answered {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
  readonly hasPaymentResponse: boolean;
}

describe('a relayer without gas under buyers', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { protocols: { mcp: { enabled: true }, a2a: { enabled: true } } } });
  });
  after(() => testbed.close());

  const relayer = (): string => privateKeyToAddress(testbed.chain.relayerKey);
  const call = async (channel: Channel, proof: string): Promise<Answered> => {
    const { gateway } = testbed;
    const post = (path: string, body: string) =>
      fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
        body,
      });
    const answer = await (channel === 'http'
      ? gateway.invoke(TOOL, INPUT, { 'payment-signature': proof })
      : channel === 'mcp'
        ? post('/mcp', tool(TOOL, INPUT, proof))
        : post('/a2a', message(TOOL, INPUT, proof)));
    const text = await answer.text();
    const { status, headers } = answer;
    const hasPaymentResponse = headers.has('payment-response') || text.includes('payment-response');
    return { status, text, retryAfter: headers.get('retry-after'), hasPaymentResponse };
  };
  const isDelivered = ({ text }: Answered): boolean => text.includes('12.50');
  /** The answer of every channel to a payment that cannot be sent. */
  const assertPostponed = (channel: Channel, answered: Answered): void => {
    assert.match(answered.text, /GATEWAY_BUSY/, `${channel}: ${answered.text}`);
    assert.match(answered.text, /relayer_unfunded/);
    assert.equal(answered.hasPaymentResponse, false, 'nothing was paid');
    if (channel === 'http') assert.deepEqual([answered.status, answered.retryAfter], [503, '1']);
  };

  for (const channel of CHANNELS)
    it(`over ${channel}: 503 with Retry-After, then the same proof is served`, async () => {
      const before = await testbed.income();
      const proof = await testbed.proof(TOOL, INPUT);
      await testbed.chain.request('anvil_setBalance', [relayer(), '0x0']);
      assertPostponed(channel, await call(channel, proof));
      await testbed.chain.fundGas(relayer());
      const served = await eventually(async () => {
        const answered = await call(channel, proof);
        if (isDelivered(answered)) return answered;
        assertPostponed(channel, answered);
        return undefined;
      }, 'an answer');
      assert.equal(served.status, 200);
      assert.equal((await testbed.income()) - before, PRICE_UNITS);
    });

  it('readiness warns and stays ready, and the metrics show how long the gas lasts', async () => {
    const look = async (status: string): Promise<number> =>
      eventually(async () => {
        const answer = await fetch(`${testbed.gateway.managementUrl}/ready`);
        const { paymentProviders } = (await answer.json()) as { readonly paymentProviders: readonly object[] };
        assert.equal(answer.status, 200);
        const detail = status === 'warn' ? { detail: 'payment-provider-degraded' } : {};
        const [found] = paymentProviders as readonly [{ readonly status: string }];
        if (found.status !== status) return undefined;
        assert.deepEqual(found, { name: 'x402', status, ...detail });
        return (await scrape(testbed.gateway.managementUrl)).get('acg_relayer_transfers_left') ?? Number.NaN;
      }, `status ${status}`);
    await testbed.chain.request('anvil_setBalance', [relayer(), '0x0']);
    assert.equal(await look('warn'), 0);
    await testbed.chain.fundGas(relayer());
    assert.ok((await look('pass')) > 100);
  });
});
