import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { SealingKey } from '../../src/crypto/seal.ts';
import { type Bed, bytesOf, COMPLETE, openBed, said } from './bed.ts';

const OLD: SealingKey = { id: 'old', key: Buffer.alloc(32, 1) };
const NEW: SealingKey = { id: 'new', key: Buffer.alloc(32, 2) };

describe('changing the keys that answers are sealed with', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  const gateway = (...keys: [SealingKey, ...SealingKey[]]) => bed.gateway({ settings: { keys } });

  it('leaves every kept answer as it is, in both directions, while the ring has both', async () => {
    const first = await gateway(OLD).run();
    const later = { ...COMPLETE, key: 'key-2', sessionId: 'cs_2' };
    const second = await gateway(NEW, OLD).run(later);
    assert.deepEqual(bytesOf(await gateway(NEW, OLD).run()), bytesOf(first));
    assert.deepEqual(bytesOf(await gateway(OLD, NEW).run(later)), bytesOf(second));
    assert.equal(bed.merchant.heard.length, 2);
  });

  it('that takes the old one away too early: the call counts as one with an unknown end, and is read back', async () => {
    await gateway(OLD).run();
    const changed = gateway(NEW);
    const found = await changed.run();
    assert.match(said(found), /^200 session /);
    assert.deepEqual(changed.told, ['done', 'unopened', 'again']);
    assert.deepEqual(bytesOf(await changed.run()), bytesOf(found));
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('never makes a blind second call, even for a merchant that goes by keys', async () => {
    await gateway(OLD).run();
    bed.merchant.nextReads({ says: 'unreadable' });
    assert.match(said(await gateway(NEW).run()), /^in_flight /);
    assert.equal(bed.merchant.heard.length, 1);
    assert.match(said(await gateway(NEW).run()), /^200 session /);
  });

  it('lets a refusal that nobody can open be asked for again', async () => {
    bed.merchant.next({ acts: false, says: 'refusal' });
    await gateway(OLD).run();
    assert.match(said(await gateway(NEW).run()), /^200 backend /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('is met by one of many at a time', async () => {
    await gateway(OLD).run();
    bed.merchant.nextReads({ says: 'unreadable' });
    const ends = await Promise.all(Array.from({ length: 10 }, () => gateway(NEW).run()));
    assert.deepEqual(new Set(ends.map(said)), new Set(['in_flight 1']));
    assert.equal(bed.merchant.heard.length, 1);
  });

  it('and an answer that is sealed anew each time with a key nobody has ends as unavailable', async () => {
    await gateway(OLD).run();
    const claims = {
      ...bed.claims,
      claim: async () => ({ kind: 'completed', status: 200, sealed: randomUUID() }) as const,
    };
    assert.equal(said(await bed.gateway({ claims }).run()), 'unavailable');
    assert.equal(bed.merchant.heard.length, 1);
  });
});

describe('changing the secret', () => {
  it('frees every key: they are other names from then on', async () => {
    const bed = openBed();
    await bed.gateway().run();
    const changed = bed.gateway({ settings: { secret: Buffer.from('another secret of a test, as long as it') } });
    assert.match(said(await changed.run()), /^200 backend /);
    await bed.close();
  });
});
