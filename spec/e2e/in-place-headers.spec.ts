import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CURRENCY } from '../support/config.ts';
import { soldInPlace } from '../support/in-place.ts';
import { receiptWhen } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring, failure, replayed } from './bring.ts';
import { bringInPlace, proofInPlace } from './in-place.ts';

const BERLIN = { city: 'Berlin' };

describe('headers of the caller that are part of what is bought in place', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { backend: { originHeaders: ['cookie', 'authorization'] }, resources: soldInPlace(CURRENCY) };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed.close());
  const sent = () => testbed.backend.requests.at(-1)?.headers;

  it('go to the backend, and an answer to one cookie is never collected with another', async () => {
    const { gateway } = testbed;
    const proof = await proofInPlace(testbed, 'market_report', BERLIN);
    const mine = { cookie: 'session=mine', authorization: 'Bearer of the merchant' };
    const bought = await bringInPlace(gateway, 'market_report', BERLIN, { proof, headers: mine });
    assert.equal(bought.status, 200);
    assert.deepEqual([sent()?.cookie, sent()?.authorization], [mine.cookie, mine.authorization]);
    await receiptWhen(gateway, bought.requestId, true);
    for (const headers of [{ ...mine, cookie: 'session=other' }, { cookie: mine.cookie }, {}])
      replayed(await bringInPlace(gateway, 'market_report', BERLIN, { proof, headers }), 'used');
    replayed(await bring(gateway, 'market_report', BERLIN, { proof }), 'used');
    const again = await bringInPlace(gateway, 'market_report', BERLIN, { proof, headers: mine });
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
    assert.doesNotMatch(gateway.logLines.join(''), /session=|of the merchant/);
  });

  it('are sent again when what failed is collected', async () => {
    const headers = { cookie: 'session=again' };
    const proof = await proofInPlace(testbed, 'flaky', { failures: 1 });
    const input = { failures: 1 };
    failure(await bringInPlace(testbed.gateway, 'flaky', input, { proof, headers }), 502, 'BACKEND_ERROR');
    replayed(await bringInPlace(testbed.gateway, 'flaky', input, { proof }), 'used');
    assert.equal((await bringInPlace(testbed.gateway, 'flaky', input, { proof, headers })).status, 200);
    assert.equal(sent()?.cookie, 'session=again');
  });

  it('stay on this channel: invoke forwards none of them', async () => {
    const answer = await testbed.gateway.invoke('free_request_headers', {}, { cookie: 'session=mine' });
    assert.equal(answer.status, 200);
    assert.equal(sent()?.cookie, undefined);
  });
});
