import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { generatePrivateKey } from 'viem/accounts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { createChain } from '../../src/payments/x402/chain/chain.ts';
import { createRpc } from '../../src/payments/x402/chain/node.ts';
import { prepareKey } from '../../src/payments/x402/evm/account.ts';
import { payRefund, type RefundOutcome } from '../../src/payments/x402/refund/pay.ts';
import { createRefundSender } from '../../src/payments/x402/refund/sender.ts';
import { openStore } from '../../src/store/open.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { keySigner } from '../../tools/refunds/signer.ts';
import { CURRENCY } from '../support/config.ts';
import { answerJson, serveHttp } from '../support/http-server.ts';
import { eventually } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { type Brought, bring } from './bring.ts';

const RESOURCE = 'report';
/** How much later one of the two may begin, milliseconds. */
const LATER_MS = 12;
/** Until one of them has the payment for good. */
const TRIES = 200;
const PAUSE_MS = 20;

/** How the payments of a run ended. */
interface RefundRaces {
  readonly races: number;
  readonly delivered: number;
  readonly refunded: number;
  /** What must be empty. */
  readonly violations: readonly string[];
}

/** Each race is a paid, undelivered call of its own. */
async function raceRefunds(races: number, store: 'sqlite' | 'redis'): Promise<RefundRaces> {
  await using ends = new AsyncDisposableStack();
  const storage =
    store === 'sqlite'
      ? { sqlite: { path: join(await temporaryDirectory(ends, 'acg-refund-races-'), 'shop.db') } }
      : { redis: { url: ends.adopt(await startRedis(), ({ stop }) => stop()).url } };
  const repaired = new Set<string>();
  const backend = ends.adopt(
    await serveHttp(async ({ request, response }) => {
      const id = request.url?.split('/').at(-1) ?? '';
      await delay(Math.random() * LATER_MS);
      if (repaired.has(id)) answerJson(response, 200, { id });
      else answerJson(response, 500, {});
    }),
    ({ stop }) => stop(),
  );
  const payee = await prepareKey(generatePrivateKey());
  const id = { type: 'string', maxLength: 64 };
  const report = {
    name: 'Report',
    inputSchema: { type: 'object', properties: { id }, required: ['id'] },
    backend: { method: 'GET', path: '/reports/{id}' },
    pricing: { type: 'fixed', amount: '0.01', currency: CURRENCY },
  };
  const testbed = ends.adopt(
    await openTestbed({
      ...{ storage, backendUrl: backend.url, payTo: payee.address },
      overrides: { resources: { [RESOURCE]: report } },
    }),
    ({ close }) => close(),
  );
  await testbed.chain.fundGas(payee.address);
  const { storage: shared, merchant, x402 } = testbed.gateway.config;
  if (x402 === undefined) throw new Error('nothing has a price');
  const own = ends.adopt(await openStore({ ...shared, merchantId: merchant.id }), (opened) => opened.close());
  const rpc = ends.adopt(createRpc(testbed.chain.rpcUrl), (opened) => opened.close());
  const [signer, sender] = [keySigner(payee, x402), createRefundSender(rpc, x402, payee)];
  const parts = { ledger: own.ledger, chain: createChain(rpc), terms: x402, signer, sender };
  const sendBack = (payId: string) => payRefund(parts, payId, { confirmed: false, now: true });

  const counts = { delivered: 0, refunded: 0 };
  const violations: string[] = [];
  for (let race = 0; race < races; race += 1) {
    const input = { id: randomUUID() };
    const proof = await testbed.proof(RESOURCE, input);
    const { payId } = await undelivered(testbed, await bring(testbed.gateway, RESOURCE, input, { proof }));
    repaired.add(input.id);
    const [collected, outcome] = await Promise.all([
      later(() => untilDecided(() => bring(testbed.gateway, RESOURCE, input, { proof }), isDecided)),
      later(() =>
        untilDecided(
          () => sendBack(payId),
          ({ kind }) => kind !== 'pending',
        ),
      ),
    ]);
    const { isDelivered, isRefunded, said } = endOf(collected, outcome);
    if (isDelivered) counts.delivered += 1;
    if (isRefunded) counts.refunded += 1;
    if (isDelivered === isRefunded) violations.push(`${payId}: ${said}`);
    // The end of a delivery is written behind its last byte.
    const end = isDelivered ? 'delivered' : 'refunded';
    const { ledger } = testbed.gateway.store;
    await eventually(async () => ((await ledger.read(payId))?.state === end ? end : undefined), `${payId} ${end}`);
    const next = await bring(testbed.gateway, RESOURCE, input, { proof });
    if (isRefunded && !(next.status === 409 && next.bytes.includes('"state":"refunded"')))
      violations.push(`${payId}: sent back, and then ${next.status} ${next.bytes.toString()}`);
  }
  const kept = (await testbed.income()) / BigInt(x402.assetDecimals === 6 ? 10_000 : 1);
  if (kept !== BigInt(counts.delivered)) violations.push(`${kept} payments are kept, ${counts.delivered} delivered`);
  return { races, ...counts, violations };
}

async function undelivered({ gateway: { store } }: Testbed, first: Brought): Promise<PaymentRecord> {
  return eventually(async () => {
    const [receipt] = (await store.receipts.page({ limit: 1, requestId: first.requestId })).receipts;
    const record = receipt?.payment && (await store.ledger.read(receipt.payment.replayKey));
    return record?.state === 'undelivered' && record.leaseUntil === 0 ? record : undefined;
  }, `an undelivered payment after ${first.status}`);
}

async function later<Result>(work: () => Promise<Result>): Promise<Result> {
  await delay(Math.random() * LATER_MS);
  return work();
}

async function untilDecided<Result>(
  tried: () => Promise<Result>,
  decided: (result: Result) => boolean,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    const result = await tried();
    if (decided(result) || tries === TRIES) return result;
    await delay(PAUSE_MS);
  }
}

/** Another try of the same proof would be answered otherwise while an attempt runs. */
function isDecided({ status, bytes }: Brought): boolean {
  return status !== 409 || !/"state":"(?:in_flight|undelivered)"/.test(bytes.toString());
}

function endOf({ status, bytes }: Brought, outcome: RefundOutcome) {
  const how = outcome.kind === 'refunded' ? outcome.transaction : outcome.why;
  return {
    isDelivered: status === 200,
    isRefunded: outcome.kind === 'refunded',
    said: `the buyer got ${status} ${bytes.toString().slice(0, 200)}, the operator ${outcome.kind}: ${how}`,
  };
}

/** `RACE_ROUNDS=500 make test SPEC=spec/e2e/refund-races.spec.ts` for the long run. */
const ROUNDS = Number(process.env['RACE_ROUNDS'] ?? 20);

describe('a payment that is sent back now while its buyer collects', () => {
  for (const store of ['sqlite', 'redis'] as const)
    it(`is paid back or delivered, never both (${store})`, async (t) => {
      const { violations, ...run } = await raceRefunds(ROUNDS, store);
      t.diagnostic(JSON.stringify(run));
      assert.deepEqual(violations, []);
      assert.ok(run.delivered > 0 && run.refunded > 0, JSON.stringify(run));
    });
});
