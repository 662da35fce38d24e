import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type ConfigObject, merged, NO_CHAIN } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import {
  type HostileFacilitator,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../support/hostile-facilitator.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { proofFor } from '../support/testbed.ts';
import { bring, failure, replayed } from './bring.ts';
import { decode, encode, found } from './proofs.ts';

const CITY = { city: 'Berlin' };
const HASH = `0x${'ab'.repeat(32)}`;
const json = (body: unknown, status = 200): ScriptedAnswer => ({ kind: 'json', status, body });
const OTHERS: Readonly<Record<string, ConfigObject>> = {
  network: { network: 'eip155:1337' },
  asset: { asset: `0x${'3'.repeat(40)}` },
  payee: { payTo: `0x${'4'.repeat(40)}` },
};

describe('a restart with another configuration of money', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-other-money-'));
  let facilitator: HostileFacilitator;
  let backend: SampleBackend;
  let buyer: Buyer;
  before(async () => {
    [facilitator, backend] = [await startHostileFacilitator('eip155:31337'), await startSampleBackend()];
    const noFunds = { mint: async () => undefined, balanceOf: async () => 0n };
    buyer = await createBuyer(noFunds, 0n);
  });
  after(async () => {
    await Promise.all([facilitator.stop(), backend.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  const open = (path: string, changes: ConfigObject = {}, more: ConfigObject = {}): Promise<TestGateway> =>
    openGateway({
      chain: NO_CHAIN,
      backendUrl: backend.url,
      storage: { sqlite: { path } },
      payTo: `0x${'2'.repeat(40)}`,
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: merged({ payments: { x402: { rpcUrl: undefined, ...changes } } }, more),
    });
  const settled = (network: string) => json({ success: true, transaction: HASH, network });

  for (const [what, changes] of Object.entries(OTHERS))
    it(`another ${what}: what was paid before is answered by its record, and never with 402`, async () => {
      const path = join(folder, `${what}.db`);
      let gateway = await open(path);
      facilitator.script({ verify: () => json({ isValid: true }), settle: () => settled('eip155:31337') });
      const delivered = await proofFor(gateway, buyer, 'market_report', CITY);
      assert.equal((await bring(gateway, 'market_report', CITY, { proof: delivered })).status, 200);
      const undelivered = await proofFor(gateway, buyer, 'flaky_post', { failures: 1 });
      failure(await bring(gateway, 'flaky_post', { failures: 1 }, { proof: undelivered }), 502, 'BACKEND_ERROR');
      const late = await proofFor(gateway, buyer, 'flaky', { failures: 1 });
      failure(await bring(gateway, 'flaky', { failures: 1 }, { proof: late }), 502, 'BACKEND_ERROR');
      facilitator.script({ verify: () => json({ isValid: true }), settle: () => json({}, 500) });
      const uncertain = await proofFor(gateway, buyer, 'market_report', CITY);
      const unknown = () => bring(gateway, 'market_report', CITY, { proof: uncertain });
      failure(await unknown(), 502, 'PAYMENT_SETTLEMENT_FAILED');
      await gateway.close();

      gateway = await open(path, changes, { resources: { flaky: undefined } });
      const asked = facilitator.calls.length;
      replayed(await bring(gateway, 'market_report', CITY, { proof: found(delivered) }), 'delivered');
      replayed(await bring(gateway, 'flaky_post', { failures: 1 }, { proof: undelivered }), 'undelivered');
      const { accepted, ...rest } = decode(late);
      const brief = encode({
        ...rest,
        accepted: { ...accepted, extra: what === 'payee' ? accepted.extra : undefined },
      });
      assert.equal((await bring(gateway, 'flaky', { failures: 1 }, { proof: brief })).status, 200, 'removed meanwhile');
      failure(await unknown(), 502, 'PAYMENT_SETTLEMENT_FAILED');
      // The payee is signed: the same facilitator may still be asked about it.
      if (what !== 'payee')
        assert.equal(facilitator.calls.slice(asked).filter(({ path }) => path === '/settle').length, 0);
      await gateway.close();

      gateway = await open(path);
      facilitator.script({ verify: () => json({ isValid: true }), settle: () => settled('eip155:31337') });
      assert.equal((await unknown()).status, 200, 'its own configuration finishes it');
      await gateway.close();
    });

  it('another service under the same id in a store is refused, and one that has moved says so', async () => {
    const path = join(folder, 'service.db');
    await (await open(path)).close();
    const moved = { merchant: { publicBaseUrl: 'https://shop.example/' } };
    await assert.rejects(
      open(path, {}, moved),
      /merchant\.publicBaseUrl: is .*market-shop in this store is the service at/,
    );
    const told = { merchant: { ...moved.merchant, formerBaseUrls: ['http://127.0.0.1:8402/'] } };
    for (const config of [told, {}]) await (await open(path, {}, config)).close();
  });
});
