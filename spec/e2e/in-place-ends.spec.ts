import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CURRENCY } from '../support/config.ts';
import { openGateway } from '../support/gateway.ts';
import { callInPlace, soldInPlace } from '../support/in-place.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring } from './bring.ts';
import { bringInPlace, proofInPlace } from './in-place.ts';

/** The price of `held`, in units of a token with six decimals. */
const UNITS = 1_000n;

describe('a gateway that ends after the settlement of a call in place', () => {
  let testbed: Testbed;
  const home = mkdtempSync(join(tmpdir(), 'acg-in-place-'));
  const storage = { sqlite: { path: join(home, 'payments.db') } };
  const sold = { resources: soldInPlace(CURRENCY) };
  before(async () => {
    testbed = await openTestbed({ storage, overrides: sold });
  });
  after(async () => {
    await testbed?.close();
    rmSync(home, { recursive: true, force: true });
  });

  for (const [where, overrides, collect] of [
    ['in place', sold, bringInPlace],
    ['on invoke', sold, bring],
    ['on invoke, after the resource was removed', { resources: { held: undefined } }, bring],
  ] as const)
    it(`leaves an answer that the next one delivers ${where}: paid once`, async () => {
      const { backend, chain, buyer, gateway: config } = testbed;
      const payTo = config.config.x402?.payTo ?? '';
      const parts = { chain, backendUrl: backend.url, facilitator: { mode: 'local' }, storage, payTo } as const;
      const first = await openGateway({ ...parts, overrides: sold });
      const proof = await proofInPlace({ gateway: first, buyer }, 'held', {});
      const income = await testbed.income();
      backend.hold();
      const arrived = backend.nextRequest('/held');
      const lost = callInPlace(first, 'held', {}, { 'payment-signature': proof }).catch(() => undefined);
      await arrived;
      await first.close();
      await lost;
      backend.release();
      const second = await openGateway({ ...parts, overrides });
      try {
        const answer = await collect(second, 'held', {}, { proof });
        assert.deepEqual([answer.status, answer.bytes.toString()], [200, '{"held":true}']);
        assert.equal((await testbed.income()) - income, UNITS);
      } finally {
        await second.close();
      }
    });
});
