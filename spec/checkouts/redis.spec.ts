import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import { REAL_TIME } from '../../src/time/time.ts';
import { redisBed } from '../store/redis-bed.ts';
import { type Bed, bedOn, bytesOf, COMPLETE, LOST, textOf, unknown } from './bed.ts';

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
  it('30 at the same time on three gateways: one runs, and all that come later get its bytes', async () => {
    const bed = openBed();
    const gateways = [bed.gateway(), bed.gateway(), bed.gateway()];
    const ends = await Promise.all(Array.from({ length: 10 }, () => gateways.map((gateway) => gateway.run())).flat());
    const answered = ends.filter((end) => end.kind === 'answered');
    assert.equal(bed.backend.posts.length, 1);
    assert.ok(ends.every(({ kind }) => kind === 'answered' || kind === 'in_flight'));
    const kept = await bed.gateway().run();
    assert.match(textOf(kept), /^200 kept /);
    for (const end of answered) assert.deepEqual(bytesOf(end), bytesOf(kept));
  });

  it('an unknown end is read back, by the same key and by another one', async () => {
    const bed = openBed();
    const call = { ...COMPLETE, sessionId: 'cs_unknown' };
    bed.backend.next(unknown(true, 'reset'));
    assert.equal(textOf(await bed.gateway().run(call)), 'failed: reset');
    assert.match(textOf(await bed.gateway().run({ ...call, key: 'key-2' })), /^200 session /);
    assert.match(textOf(await bed.gateway().run(call)), /^200 session /);
    assert.equal(textOf(await bed.gateway().run({ ...call, body: {} })), 'conflict');
    assert.equal(bed.backend.orders('cs_unknown'), 1);
  });

  it('a gateway that dies after the backend acted keeps the session until its lease ends, and no longer', async () => {
    const bed = openBed();
    const call = { ...COMPLETE, sessionId: 'cs_dead' };
    const claim: CheckoutClaims['claim'] = (wanted) => bed.claims.claim({ ...wanted, leaseMs: SHORT_LEASE_MS });
    bed.backend.next(LOST);
    void bed.gateway({ claims: { claim } }).run(call);
    await until(() => bed.backend.posts.length === 1);
    const gateway = bed.gateway();
    let end = await gateway.run({ ...call, key: 'key-2' });
    assert.match(textOf(end), /^session_busy /);
    while (end.kind === 'session_busy') end = await gateway.run({ ...call, key: 'key-2' });
    assert.match(textOf(end), /^200 session /);
    assert.equal(bed.backend.orders('cs_dead'), 1);
  });
});
