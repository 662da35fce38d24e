import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { CURRENCY, merged } from '../../../spec/support/config.ts';
import { eventually } from '../../../spec/support/records.ts';
import { sampleResources } from '../../../spec/support/resources.ts';
import { seenHangUp } from '../../../spec/support/seen-hang-up.ts';
import { AFTER, SEALING } from '../../../spec/support/settled-after.ts';
import { ask, insist, type PaidCall, send, signedCall } from './buyer.ts';
import { type Ground, startGround } from './ground.ts';
import { openSite, type Site, type SiteParts } from './site.ts';

/** Longer than an authorization of these sites lasts, milliseconds. */
const AHEAD_MS = 130_000;
const AHEAD = pathToFileURL(join(import.meta.dirname, 'ahead.ts')).href;
/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 120_000;

const held = sampleResources(CURRENCY)['held'] as Parameters<typeof merged>[0];
const HELD_LATER = { storage: { sealing: SEALING }, resources: { held_later: merged(held, AFTER) } };

interface Envelope {
  readonly payment: { readonly envelope: unknown };
}

describe('a gateway that dies before a call is paid that is settled after it', () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const store of ['sqlite', 'redis'] as const)
    it(`while the backend works, on ${store}: nothing is paid until the same proof comes again`, {
      timeout: TIMEOUT_MS,
    }, async () => {
      const { site, call } = await killedAtWork({ store, rail: 'local' });
      assert.equal(await site.income(), 0n);
      const gateway = await site.start();
      const { status, text } = await insist(call, site.baseUrl);
      assert.deepEqual([status, text], [200, '{"held":true}']);
      assert.equal(await site.income(), call.units);
      assert.equal(ground.merchant.executions(call.merchantKey), 2, 'asked a second time, under the same key');
      assert.equal((await site.receipts()).length, 1);
      await gateway.kill();
    });

  // Last: from here on the chain is ahead.
  it('with the answer kept, and its buyer stays away until the proof is over: unpaid, unreleased, and sold to the next proof', {
    timeout: TIMEOUT_MS,
  }, async (t) => {
    const { merchant: backend } = ground;
    const asked = backend.requests.length;
    const site = await openSite(ground, { store: 'sqlite', rail: 'local', overrides: HELD_LATER });
    const doomed = await site.start({ halt: { at: 'worked', signal: 'SIGKILL' } });
    backend.hold();
    const call = await signedCall(ground, site, 'held_later', {});
    const arrived = backend.nextRequest('/held');
    const leaving = new AbortController();
    const left = send(call, site.baseUrl, leaving.signal);
    await arrived;
    leaving.abort();
    assert.equal(await left, undefined);
    await seenHangUp(site.baseUrl);
    backend.release();
    await doomed.ended;

    await ground.chain.request('evm_increaseTime', [AHEAD_MS / 1_000]);
    await ground.chain.request('evm_mine', []);
    const gateway = await site.start({ env: { AHEAD_MS: String(AHEAD_MS) }, execArgv: ['--import', AHEAD] });
    const reader = await site.openStore();
    ground.keep(() => reader.close());
    await eventually(async () => {
      const record = await reader.ledger.read(call.payId);
      return record?.state === 'refused' ? record : undefined;
    }, 'the reconciler to refuse it');
    assert.deepEqual(
      (await reader.ledger.unpaid(10)).map(({ payId }) => payId),
      [call.payId],
    );
    assert.deepEqual([await site.income(), await site.receipts()], [0n, []]);

    const { status, text } = await ask(call, site.baseUrl);
    assert.equal(status, 402, text);
    const now = Date.now.bind(Date);
    t.mock.method(Date, 'now', () => now() + AHEAD_MS);
    const proof = await ground.buyer.pay((JSON.parse(text) as Envelope).payment.envelope);
    const bought = await ask({ ...call, proof }, site.baseUrl);
    assert.deepEqual([bought.status, bought.text], [200, '{"held":true}']);
    assert.equal(backend.requests.length - asked, 1);
    assert.equal(await site.income(), call.units);
    await gateway.kill();
  });

  /** Brings a proof, and kills the gateway with SIGKILL as soon as the backend has the call. */
  async function killedAtWork(where: Pick<SiteParts, 'store' | 'rail'>): Promise<{ site: Site; call: PaidCall }> {
    const { merchant: backend } = ground;
    const site = await openSite(ground, { ...where, overrides: HELD_LATER });
    const gateway = await site.start();
    backend.hold();
    const call = await signedCall(ground, site, 'held_later', {});
    const arrived = backend.nextRequest('/held');
    const cut = send(call, site.baseUrl);
    await arrived;
    await gateway.kill();
    assert.equal(await cut, undefined, 'nothing was answered before the kill');
    backend.release();
    return { site, call };
  }
});
