import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { UNDELIVERED_CAUSES } from '../../src/telemetry/metrics/payment-metrics.ts';
import { eventually } from '../support/records.ts';
import { seenHangUp } from '../support/seen-hang-up.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { scrape } from './scrape.ts';

const undelivered = (series: ReadonlyMap<string, number>): Readonly<Record<string, number | undefined>> =>
  Object.fromEntries(
    UNDELIVERED_CAUSES.map((cause) => [cause, series.get(`acg_paid_undelivered_total{cause="${cause}"}`)]),
  );

describe('/metrics', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('counts what was paid and not delivered, and shows it as open', async () => {
    // The first scrape: open payments are counted once in five seconds.
    const input = { failures: 1 };
    const proof = await testbed.proof('flaky_post', input);
    const send = (): Promise<Response> => testbed.gateway.invoke('flaky_post', input, { 'payment-signature': proof });
    assert.equal((await send()).status, 502);
    const series = await scrape(testbed.gateway.managementUrl);
    assert.deepEqual(undelivered(series), { merchant: 1, client_gone: 0, gateway: 0 });
    assert.equal(series.get('acg_payments_total{resource="flaky_post",channel="http",state="undelivered"}'), 1);
    assert.equal(series.get('acg_payments_undelivered'), 1);
    assert.equal(series.get('acg_payments_uncertain'), 0);
    for (const operation of ['verify', 'settle'])
      assert.equal(series.get(`acg_rail_seconds_count{operation="${operation}"}`), 1);
    assert.ok((series.get('acg_ledger_seconds_count{operation="advance"}') ?? 0) >= 2);
  });

  it('counts what was taken, in the units and under the names of the offer', async () => {
    const x402 = testbed.gateway.config.x402 ?? assert.fail('no payments are configured');
    const unitsOf = async (resource: string): Promise<number | undefined> =>
      (await scrape(testbed.gateway.managementUrl)).get(
        `acg_settled_units_total{resource="${resource}",network="${x402.network}",asset="${x402.asset}"}`,
      );
    assert.equal(await unitsOf('market_report'), 0);
    const [income, proof] = [await testbed.income(), await testbed.proof('market_report', { city: 'Berlin' })];
    await (await testbed.gateway.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof })).text();
    assert.equal(await unitsOf('market_report'), Number((await testbed.income()) - income));
  });

  it('does not count a buyer that hangs up against the backend that answered', async () => {
    const before = undelivered(await scrape(testbed.gateway.managementUrl));
    const { gateway, backend } = testbed;
    const headers = { 'content-type': 'application/json', 'payment-signature': await testbed.proof('held') };
    backend.hold();
    const arrived = backend.nextRequest('/');
    const leaving = new AbortController();
    const init = { method: 'POST', headers, body: '{}', signal: leaving.signal };
    const call = fetch(`${gateway.url}/api/resources/held/invoke`, init).catch(() => undefined);
    await arrived;
    leaving.abort();
    await call;
    await seenHangUp(gateway.url);
    backend.release();
    const counted = await eventually(async () => {
      const now = undelivered(await scrape(gateway.managementUrl));
      return JSON.stringify(now) === JSON.stringify(before) ? undefined : now;
    }, 'the delivery to be given up');
    assert.deepEqual(counted, { ...before, client_gone: (before['client_gone'] ?? 0) + 1 });
  });
});
