import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import { transferCall } from '../../src/payments/x402/evm/eip3009.ts';
import type { Eip3009Authorization } from '../../src/payments/x402/wire/types.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { sign } from '../payments/x402/signing.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { openGateway, type TestGateway, type TestGatewayParts } from '../support/gateway.ts';
import { eventsUntil, metadataOf, receiptWhen } from '../support/records.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { quoteOf, proofFor as signedProof } from '../support/testbed.ts';
import { bring, failure, replayed } from './bring.ts';
import { decode, encode, found, seconds } from './proofs.ts';

/** A store and its loss. `lose` may close the gateway and open another one over the empty store. */
interface Losable {
  readonly storage: NonNullable<TestGatewayParts['storage']>;
  lose(gateway: TestGateway, reopen: () => Promise<TestGateway>): Promise<TestGateway>;
}

/** Both engines, by the way in which they lose their memory. The SQLite file lies in `folder`. */
function forgetfulStores(redis: TestRedis, folder: string): Readonly<Record<string, Losable>> {
  return {
    'FLUSHALL on Redis': {
      storage: { redis: { url: redis.url } },
      async lose(gateway) {
        const client = new Redis(redis.socketPath);
        await client.flushall();
        await client.quit();
        return gateway;
      },
    },
    'the SQLite file removed': {
      storage: { sqlite: { path: join(folder, 'gateway.db') } },
      async lose(gateway, reopen) {
        await gateway.close();
        for (const end of ['', '-wal', '-shm']) rmSync(join(folder, `gateway.db${end}`), { force: true });
        return reopen();
      },
    },
  };
}

const INPUT = { city: 'Berlin' };
const PRICE_UNITS = 10_000n;

const folder = mkdtempSync(join(tmpdir(), 'acg-loss-'));
const redis = await startRedis();
after(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

for (const [at, [how, { storage, lose }]] of Object.entries(forgetfulStores(redis, folder)).entries())
  for (const rail of at === 0 ? (['local'] as const) : (['local', 'remote'] as const))
    describe(`${how} between payment and retry, ${rail} facilitator`, () => {
      let chain: Chain;
      let backend: SampleBackend;
      let facilitator: Facilitator;
      let buyer: Buyer;
      let gateway: TestGateway;
      let policy: 'deliver' | 'refuse' = 'deliver';
      let payToExclusive = true;
      const payTo = privateKeyToAddress(generatePrivateKey());

      const open = (): Promise<TestGateway> =>
        openGateway({
          chain,
          backendUrl: backend.url,
          storage,
          payTo,
          facilitator: rail === 'local' ? { mode: 'local' } : { mode: 'remote', url: facilitator.url },
          overrides: { payments: { x402: { onStoreLoss: policy, payToExclusive } } },
        });
      const reopen = async (next: 'deliver' | 'refuse'): Promise<void> => {
        await gateway.close();
        policy = next;
        gateway = await open();
      };
      const forget = async (): Promise<void> => {
        gateway = await lose(gateway, open);
      };
      before(async () => {
        [chain, backend] = await Promise.all([startChain(), startSampleBackend()]);
        facilitator = await startFacilitator(chain);
        buyer = await createBuyer(chain);
        gateway = await open();
      });
      after(async () => {
        await gateway.close();
        await Promise.all([chain.stop(), backend.stop(), facilitator.stop()]);
      });

      const proofFor = (id: string, input?: unknown): Promise<string> => signedProof(gateway, buyer, id, input);
      /** The token of a 402 of another caller. */
      const tokenFor = async (id: string, input: unknown): Promise<string> => {
        const { payment } = (await quoteOf(gateway, id, input)).body;
        return payment.envelope.extensions?.['agent-commerce-buyer']?.info.token ?? '';
      };
      /** The same proof over other words of the authorization, signed anew. */
      const signedAnew = async (proof: string, changes: Partial<Eip3009Authorization>): Promise<string> => {
        const payload = decode(proof);
        const authorization = { ...payload.payload.authorization, ...changes } as unknown as Eip3009Authorization;
        const { x402 } = gateway.config;
        assert.ok(x402 !== undefined);
        return encode({
          ...payload,
          payload: { signature: await sign(buyer.account, authorization, x402), authorization },
        });
      };
      const income = (): Promise<bigint> => chain.balanceOf(payTo);

      it('paid and not delivered: the buyer gets the answer once, and is not charged again', async () => {
        const before = await income();
        const proof = await proofFor('flaky', { failures: 1 });
        failure(await bring(gateway, 'flaky', { failures: 1 }, { proof }), 502, 'BACKEND_ERROR');
        await forget();
        const collected = await bring(gateway, 'flaky', { failures: 1 }, { proof });
        assert.deepEqual([collected.status, collected.bytes.toString()], [200, '{"delivered":true}']);
        assert.equal(collected.payment?.success, true);
        const receipt = await receiptWhen(gateway, collected.requestId, true);
        assert.deepEqual(metadataOf(receipt), { recovered: 'chain' });
        assert.equal(receipt.payment?.externalReference, collected.payment?.transaction);
        assert.equal(backend.executions(backendIdempotencyKey(receipt.payment?.replayKey ?? '')), 2);
        const events = await eventsUntil(gateway, collected.requestId, 'resource.delivered');
        assert.deepEqual(
          events.map(({ type }) => type),
          ['resource.requested', 'payment.settled', 'backend.called', 'resource.delivered'],
        );
        replayed(await bring(gateway, 'flaky', { failures: 1 }, { proof: found(proof) }), 'delivered');
        assert.equal((await income()) - before, 1_000n);
      });

      it('delivered before: delivered at most once more, never charged again', async () => {
        const before = await income();
        const proof = await proofFor('market_report', INPUT);
        assert.equal((await bring(gateway, 'market_report', INPUT, { proof })).status, 200);
        await forget();
        const again = await bring(gateway, 'market_report', INPUT, { proof });
        assert.equal(again.status, 200);
        assert.deepEqual(metadataOf(await receiptWhen(gateway, again.requestId, true)), { recovered: 'chain' });
        replayed(await bring(gateway, 'market_report', INPUT, { proof: found(proof) }), 'delivered');
        assert.equal((await income()) - before, PRICE_UNITS);
      });

      it(`where another store may use the payee: ${rail === 'local' ? 'to the buyer whose token the transaction carries, and to no stranger' : '409, logged'}`, async () => {
        payToExclusive = false;
        await reopen('deliver');
        try {
          const [proof, prefetched] = [await proofFor('market_report', INPUT), await tokenFor('market_report', INPUT)];
          assert.equal((await bring(gateway, 'market_report', INPUT, { proof })).status, 200);
          await forget();
          backend.forget();
          const strange = [
            found(proof),
            found(proof, prefetched),
            found(proof, await tokenFor('market_report', INPUT)),
          ];
          for (const stranger of strange)
            replayed(await bring(gateway, 'market_report', INPUT, { proof: stranger }), 'used');
          assert.equal(backend.requests.length, 0);
          assert.ok(gateway.logLines.some((line) => line.includes('is not known to be this buyer')));
          const own = await bring(gateway, 'market_report', INPUT, { proof });
          if (rail === 'remote') replayed(own, 'used');
          else assert.equal(own.status, 200, own.bytes.toString());
          assert.equal(backend.requests.length, rail === 'remote' ? 0 : 1);
          for (const stranger of strange)
            replayed(
              await bring(gateway, 'market_report', INPUT, { proof: stranger }),
              rail === 'remote' ? 'used' : 'delivered',
            );
        } finally {
          payToExclusive = true;
          await reopen('deliver');
        }
      });

      it('with the policy "refuse": 409 "used", never 402, and the merchant is not called', async () => {
        await reopen('refuse');
        try {
          const before = await income();
          const proof = await proofFor('market_report', INPUT);
          assert.equal((await bring(gateway, 'market_report', INPUT, { proof })).status, 200);
          await forget();
          backend.forget();
          for (let attempt = 0; attempt < 2; attempt += 1) {
            const answer = await bring(gateway, 'market_report', INPUT, { proof });
            assert.equal(replayed(answer, 'used').details.payment, undefined);
            assert.equal(answer.headers.get('payment-required'), null);
          }
          assert.equal(backend.requests.length, 0);
          assert.equal((await income()) - before, PRICE_UNITS);
        } finally {
          await reopen('deliver');
        }
      });

      it('and the proof is too old by now: delivered all the same', async () => {
        const proof = await proofFor('market_report', INPUT);
        const short = await signedAnew(proof, { validBefore: String(seconds() + 3) });
        // As the gateway would have done while the proof was young; then its store was lost.
        const { authorization, signature } = decode(short).payload;
        const relayer = privateKeyToAddress(generatePrivateKey());
        await chain.fundGas(relayer);
        const call = transferCall(
          authorization as unknown as Eip3009Authorization,
          String(signature),
          'account',
        ) as Hex;
        const before = await income();
        await chain.send(relayer, chain.token.address, call);
        assert.equal((await income()) - before, PRICE_UNITS);
        const validBefore = Number(authorization['validBefore']) * 1_000;
        await delay(Math.max(0, validBefore - Date.now() + 10));
        const collected = await bring(gateway, 'market_report', INPUT, { proof: short });
        assert.equal(collected.status, 200, collected.bytes.toString());
        assert.deepEqual(metadataOf(await receiptWhen(gateway, collected.requestId, true)), { recovered: 'chain' });
        assert.equal((await income()) - before, PRICE_UNITS);
      });
    });
