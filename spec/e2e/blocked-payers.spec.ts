import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { startFacilitator } from '../support/facilitator.ts';
import { type HostileFacilitator, relayTo, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { settledAfter } from '../support/settled-after.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring } from './bring.ts';
import { WITH_IN_PLACE } from './mandate-channels.ts';

const INPUT = { city: 'Berlin' };
const OTHER = `0x${'12'.repeat(20)}`;
const BLOCKED = { code: 'PAYER_BLOCKED', retryable: false };

describe('a payer that the operator blocks', () => {
  const ends = new AsyncDisposableStack();
  let testbed: Testbed;
  let hostile: HostileFacilitator;
  let list: string;
  before(async () => {
    list = join(await temporaryDirectory(ends, 'acg-blocked-'), 'blocked');
    await writeFile(list, '');
    hostile = ends.adopt(await startHostileFacilitator('eip155:31337'), ({ stop }) => stop());
    const overrides = { ...settledAfter('market_report', 'flaky'), payments: { blockedPayers: `\${file:${list}}` } };
    const facilitator = { mode: 'remote', url: hostile.url } as const;
    testbed = ends.adopt(await openTestbed({ facilitator, overrides }), ({ close }) => close());
    const official = ends.adopt(await startFacilitator(testbed.chain), ({ stop }) => stop());
    hostile.script({ verify: relayTo(official.url), settle: relayTo(official.url) });
  });
  after(() => ends.disposeAsync());

  /** Writes the list, and has the gateway read it as a reload does. */
  const block = async (...lines: readonly string[]): Promise<void> => {
    await writeFile(list, `# 2026-11-29\n${lines.join('\n')}\n`);
    testbed.gateway.reload({});
  };
  const payments = (): number => hostile.calls.filter(({ path }) => path !== '/supported').length;
  const spelled = (): string => `0x${testbed.buyer.address.slice(2).toUpperCase()}  # in another case`;

  for (const [channel, send] of Object.entries(WITH_IN_PLACE))
    for (const [settled, resourceId] of [
      ['before', 'market_report'],
      ['after', 'echo'],
    ] as const)
      it(`buys nothing over ${channel} that is settled ${settled} its call: nothing is asked of a facilitator, and nothing is left behind`, async () => {
        const { gateway, backend } = testbed;
        await block();
        const [proof, offered] = [await testbed.proof(resourceId, INPUT), await testbed.quote(resourceId, INPUT)];
        await block(OTHER, '', spelled());
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
        const counted = `acg_calls_total{resource="${resourceId}",channel="${channel}",outcome="PAYER_BLOCKED"} 1\n`;
        assert.ok((await readMetrics(gateway.managementUrl)).includes(counted));
        await block(OTHER);
        assert.equal((await send(gateway, call)).code, undefined, 'the same proof buys once it is not blocked');
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
