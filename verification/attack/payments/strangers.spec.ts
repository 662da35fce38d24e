import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { found } from '../../../spec/e2e/proofs.ts';
import { createBuyer } from '../../../spec/support/buyer.ts';
import { type Facilitator, startFacilitator } from '../../../spec/support/facilitator.ts';
import { receiptWhen } from '../../../spec/support/records.ts';
import { startRedis } from '../../../spec/support/redis.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Channel } from './channels.ts';

/** Attempts of each stranger in each case; ACG_STRANGERS=12 makes more than a thousand. */
const TIMES = Number(process.env['ACG_STRANGERS'] ?? 1);
const INPUT = { city: 'Berlin' };
const NEVER_YET = { failures: 1 };

const folder = mkdtempSync(join(tmpdir(), 'acg-strangers-'));
const redis = await startRedis();
after(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

const STORES = {
  Redis: { redis: { url: redis.url } },
  SQLite: { sqlite: { path: join(folder, 'gateway.db') } },
} as const;

for (const [name, storage] of Object.entries(STORES))
  for (const rail of ['local', 'remote'] as const)
    describe(`strangers that have read the block, ${name}, ${rail} rail`, () => {
      let testbed: Testbed;
      let facilitator: Facilitator | undefined;
      let strangers = 0;
      before(async () => {
        testbed = await openTestbed(async (chain) => {
          facilitator = rail === 'remote' ? await startFacilitator(chain) : undefined;
          return {
            storage,
            facilitator: facilitator === undefined ? { mode: 'local' } : { mode: 'remote', url: facilitator.url },
            overrides: ALL_CHANNELS,
          };
        });
      });
      after(async () => {
        await testbed?.close();
        await facilitator?.stop();
      });

      const tokenFor = async (id: string, input: unknown): Promise<string> => {
        const { body } = await testbed.quote(id, input);
        const { extensions } = body.payment.envelope as { extensions: Record<string, { info: { token: string } }> };
        return extensions['agent-commerce-buyer']?.info.token ?? assert.fail();
      };
      /**
       * The tokens and keys that a stranger can bring over every channel: none, a token fetched
       * before or after the block, an own key.
       */
      const strange = async (proof: string, prefetched: string, id: string, input: object): Promise<void> => {
        for (let time = 0; time < TIMES; time += 1)
          for (const channel of CHANNELS) {
            const tries = [
              { proof: found(proof) },
              { proof: found(proof, prefetched) },
              { proof: found(proof, await tokenFor(id, input)) },
              { proof: found(proof), headers: { 'idempotency-key': randomUUID() } },
            ];
            for (const shown of tries) {
              const seen = await buy(testbed.gateway.url, channel, { resourceId: id, input, ...shown });
              assert.equal(seen.code, 'PAYMENT_REPLAYED', `${channel}: ${seen.everything}`);
              strangers += 1;
            }
          }
      };
      const proofOf = async (id: string, input: unknown): Promise<string> => {
        const { body } = await testbed.quote(id, input);
        return (await createBuyer(testbed.chain)).pay(body.payment.envelope);
      };

      for (const channel of CHANNELS) {
        const purchase = (id: string, input: object, proof: string, by: Channel = channel) =>
          buy(testbed.gateway.url, by, { resourceId: id, input, proof });

        it(`bought over ${channel} and running: none joins; the buyer gets its answer`, async () => {
          const [proof, prefetched] = [await proofOf('held', {}), await tokenFor('held', {})];
          testbed.backend.hold();
          const arrived = testbed.backend.nextRequest('/held');
          const running = purchase('held', {}, proof);
          await arrived;
          const { length } = testbed.backend.requests;
          await strange(proof, prefetched, 'held', {});
          testbed.backend.release();
          assert.equal((await running).outcome, 'delivered');
          assert.equal(testbed.backend.requests.length, length);
        });

        it(`bought over ${channel} and delivered: none gets the kept answer; the buyer does, over each channel`, async () => {
          const [proof, prefetched] = [await proofOf('market_report', INPUT), await tokenFor('market_report', INPUT)];
          const first = await purchase('market_report', INPUT, proof);
          assert.equal(first.outcome, 'delivered', first.everything);
          await receiptWhen(testbed.gateway, first.requestId, true);
          const { length } = testbed.backend.requests;
          await strange(proof, prefetched, 'market_report', INPUT);
          for (const by of CHANNELS)
            assert.equal((await purchase('market_report', INPUT, proof, by)).outcome, 'delivered', `again over ${by}`);
          assert.equal(testbed.backend.requests.length, length);
        });

        it(`bought over ${channel} and not delivered: none collects; the buyer does`, async () => {
          const [proof, prefetched] = [await proofOf('flaky', NEVER_YET), await tokenFor('flaky', NEVER_YET)];
          assert.equal((await purchase('flaky', NEVER_YET, proof)).code, 'BACKEND_ERROR');
          await strange(proof, prefetched, 'flaky', NEVER_YET);
          assert.equal((await purchase('flaky', NEVER_YET, proof)).outcome, 'delivered');
        });
      }

      it('are counted', (context) => {
        assert.equal(strangers, TIMES * CHANNELS.length * 4 * 3 * CHANNELS.length);
        context.diagnostic(`${strangers} strangers, 0 of them served`);
      });
    });
