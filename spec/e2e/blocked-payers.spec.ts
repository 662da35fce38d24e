import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { createBuyer } from '../support/buyer.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { type HostileFacilitator, relayTo, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { callInPlace } from '../support/in-place.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { settledAfter } from '../support/settled-after.ts';
import { openTestbed, proofFor, type Testbed } from '../support/testbed.ts';
import { bring, failure } from './bring.ts';
import { type Call, CHANNELS } from './mandate-channels.ts';

const INPUT = { city: 'Berlin' };
const BLOCKED = { code: 'PAYER_BLOCKED', retryable: false };

describe('a payer that the operator blocks', () => {
  let ends: AsyncDisposableStack;
  let testbed: Testbed;
  let hostile: HostileFacilitator;
  let official: Facilitator;
  let list: string;
  before(async () => {
    ends = new AsyncDisposableStack();
    list = join(await temporaryDirectory(ends, 'acg-blocked-'), 'blocked');
    await writeFile(list, '');
    hostile = await startHostileFacilitator('eip155:31337');
    testbed = await openTestbed({
      facilitator: { mode: 'remote', url: hostile.url },
      overrides: {
        ...settledAfter('market_report', 'flaky'),
        payments: { blockedPayers: `\${file:${list}}` },
      },
    });
    official = await startFacilitator(testbed.chain);
    hostile.script({ verify: relayTo(official.url), settle: relayTo(official.url) });
    ends.defer(async () => void (await Promise.all([testbed.close(), hostile.stop(), official.stop()])));
  });
  after(() => ends?.disposeAsync());

  /** Writes the list, and has the gateway read it as a reload does. */
  const block = async (...lines: readonly string[]): Promise<void> => {
    await writeFile(list, `# 2026-11-29\n${lines.join('\n')}\n`);
    testbed.gateway.reload({});
  };
  const payments = (): number => hostile.calls.filter(({ path }) => path !== '/supported').length;
  const spelled = (): string => `0x${testbed.buyer.address.slice(2).toUpperCase()}  # in another case`;

  const channels = {
    ...CHANNELS,
    async origin(gateway: Testbed['gateway'], { resourceId, input, proof = '', headers }: Call) {
      const answer = await callInPlace(gateway, resourceId, input, { ...headers, 'payment-signature': proof });
      const raw = await answer.text();
      const body = JSON.parse(raw) as { readonly code?: string };
      return { code: answer.ok ? undefined : body.code, body, raw };
    },
  };
  for (const [channel, send] of Object.entries(channels))
    for (const [settled, resourceId] of [
      ['before', 'market_report'],
      ['after', 'echo'],
    ] as const)
      it(`buys nothing over ${channel} that is settled ${settled} its call: nothing is asked of a facilitator, and nothing is left behind`, async () => {
        const { gateway, backend } = testbed;
        await block();
        const [proof, offered] = [await testbed.proof(resourceId, INPUT), await testbed.quote(resourceId, INPUT)];
        await block(`0x${'12'.repeat(20)}`, '', spelled());
        const asked = payments();
        backend.forget();
        const requestId = `blocked-${channel}-${resourceId}`;
        const call = { resourceId, input: INPUT, proof, headers: { 'x-request-id': requestId } };
        const refused = await send(gateway, call);
        assert.partialDeepStrictEqual(refused.body, BLOCKED, refused.raw);
        assert.deepEqual([payments(), backend.requests.length], [asked, 0]);
        const events = await eventsUntil(gateway, requestId, 'payment.rejected');
        assert.deepEqual(
          events.map(({ type, data }) => [type, data]),
          [
            ['resource.requested', undefined],
            ['payment.rejected', { reason: 'payer_blocked' }],
          ],
        );
        const { accepts } = (await testbed.quote(resourceId, INPUT)).body.payment;
        assert.deepEqual(accepts, offered.body.payment.accepts, 'the challenge is that of every caller');
        await block();
        assert.equal((await send(gateway, call)).code, undefined, 'the same proof buys once it is not blocked');
      });

  it('is counted by its code, answered 403, and keeps no other payer out', async () => {
    const proof = await testbed.proof('market_report', INPUT);
    await block(testbed.buyer.address.toLowerCase());
    failure(await bring(testbed.gateway, 'market_report', INPUT, { proof }), 403, 'PAYER_BLOCKED');
    const counted = /^acg_calls_total\{resource="market_report",channel="http",outcome="PAYER_BLOCKED"\} [1-9]/m;
    assert.match(await readMetrics(testbed.gateway.managementUrl), counted);
    const other = await proofFor(testbed.gateway, await createBuyer(testbed.chain), 'market_report', INPUT);
    assert.equal((await bring(testbed.gateway, 'market_report', INPUT, { proof: other })).status, 200);
  });

  it('has what it paid for before: an answer again, and one that was not delivered', async () => {
    await block();
    const proof = await testbed.proof('market_report', INPUT);
    const first = await bring(testbed.gateway, 'market_report', INPUT, { proof });
    await receiptWhen(testbed.gateway, first.requestId, true);
    const owed = { proof: await testbed.proof('flaky', { failures: 1 }) };
    const failed = await bring(testbed.gateway, 'flaky', { failures: 1 }, owed);
    assert.equal(failed.status, 502);
    await block(testbed.buyer.address);
    const asked = payments();
    const again = await bring(testbed.gateway, 'market_report', INPUT, { proof });
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
    assert.deepEqual(again.bytes, first.bytes);
    const collected = await bring(testbed.gateway, 'flaky', { failures: 1 }, owed);
    assert.equal(collected.status, 200, collected.bytes.toString());
    assert.equal(payments(), asked);
  });
});
