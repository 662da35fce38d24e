import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import { REAL_TIME } from '../../src/time/time.ts';
import { redisBed } from '../store/redis-bed.ts';
import { type Bed, bedOn, bytesOf, COMPLETE, said } from './bed.ts';

/** A lease that a test can see end, milliseconds. */
const SHORT_LEASE_MS = 60;

const redis = redisBed();

/** Each on a session of its own. */
function openBed(): Bed {
  return bedOn({ claims: redis.store.checkouts, time: REAL_TIME, pass: () => undefined, close: async () => undefined });
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate);
}

describe('keyed calls on Redis', () => {
  it('30 at the same time on three gateways: one runs, and all that come later are given its bytes', async () => {
    const bed = openBed();
    const gateways = [bed.gateway(), bed.gateway(), bed.gateway()];
    const ends = await Promise.all(Array.from({ length: 10 }, () => gateways.map((gateway) => gateway.run())).flat());
    const answered = ends.filter((end) => end.kind === 'answered');
    assert.equal(bed.merchant.heard.length, 1);
    assert.ok(ends.every(({ kind }) => kind === 'answered' || kind === 'in_flight'));
    const kept = await bed.gateway().run();
    assert.match(said(kept), /^200 kept /);
    for (const end of answered) assert.deepEqual(bytesOf(end), bytesOf(kept));
  });

  it('an unknown end is read back, by the same key and by another one', async () => {
    const bed = openBed();
    const call = { ...COMPLETE, sessionId: 'cs_unknown' };
    bed.merchant.next({ acts: true, says: { unknown: 'reset' } });
    assert.equal(said(await bed.gateway().run(call)), 'failed: reset');
    assert.match(said(await bed.gateway().run({ ...call, key: 'key-2' })), /^200 session /);
    assert.match(said(await bed.gateway().run(call)), /^200 session /);
    assert.equal(said(await bed.gateway().run({ ...call, body: {} })), 'conflict');
    assert.equal(bed.merchant.orders('cs_unknown'), 1);
  });

  it('a gateway that dies after the merchant acted keeps the session until its lease ends, and no longer', async () => {
    const bed = openBed();
    const call = { ...COMPLETE, sessionId: 'cs_dead' };
    const claim: CheckoutClaims['claim'] = (wanted) => bed.claims.claim({ ...wanted, leaseMs: SHORT_LEASE_MS });
    bed.merchant.next({ acts: true, says: 'lost' });
    void bed.gateway({ claims: { ...bed.claims, claim } }).run(call);
    await until(() => bed.merchant.heard.length === 1);
    const gateway = bed.gateway();
    let end = await gateway.run({ ...call, key: 'key-2' });
    assert.match(said(end), /^session_busy /);
    while (end.kind === 'session_busy') end = await gateway.run({ ...call, key: 'key-2' });
    assert.match(said(end), /^200 session /);
    assert.equal(bed.merchant.orders('cs_dead'), 1);
  });
});
