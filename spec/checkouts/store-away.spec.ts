import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import { StoreError } from '../../src/store/port/store.ts';
import { type Bed, COMPLETE, openBed, said, TIMEOUT_MS } from './bed.ts';

const LEASE_MS = TIMEOUT_MS + 3_000;
const away = (): Promise<never> => Promise.reject(new StoreError(new Error('connection lost')));

/** Every command of it takes so long and says nothing. */
const AWAY: CheckoutClaims = {
  claim: away,
  finish: away,
  unknown: away,
  release: away,
  own: away,
  ownership: away,
};

/** acp 12.8: what a store that is away changes. */
describe('a store that is away', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  it('at the claim: nothing is called', async () => {
    const gateway = bed.gateway({ claims: AWAY });
    assert.equal(said(await gateway.run()), 'unavailable');
    assert.equal(bed.merchant.heard.length, 0);
    assert.deepEqual(gateway.told, ['unavailable']);
  });

  it('for the reply to a claim only: the claim goes out once more, and is recognised', async () => {
    const owners: string[] = [];
    const claim: CheckoutClaims['claim'] = async (wanted) => {
      owners.push(wanted.owner);
      const claimed = await bed.claims.claim(wanted);
      return owners.length === 1 ? away() : claimed;
    };
    const gateway = bed.gateway({ claims: { ...bed.claims, claim } });
    assert.match(said(await gateway.run()), /^200 backend /);
    assert.equal(new Set(owners).size, 1);
    assert.equal(owners.length, 2);
    assert.deepEqual(gateway.told, ['first']);
  });

  it('for as long as a command may take: the claim is not repeated', async () => {
    let sent = 0;
    const claim = async (): Promise<never> => {
      sent += 1;
      bed.pass(500);
      return away();
    };
    assert.equal(said(await bed.gateway({ claims: { ...bed.claims, claim } }).run()), 'unavailable');
    assert.equal(sent, 1);
  });

  it('for a moment at the end: the answer is kept at the third try, within about a second', async () => {
    let tries = 0;
    const finish: CheckoutClaims['finish'] = (...end) => {
      tries += 1;
      return tries < 3 ? away() : bed.claims.finish(...end);
    };
    const gateway = bed.gateway({ claims: { ...bed.claims, finish } });
    const began = bed.now();
    assert.match(said(await gateway.run()), /^200 backend /);
    assert.ok(bed.now() - began <= 1_500, `${bed.now() - began} ms`);
    assert.match(said(await bed.gateway().run()), /^200 kept /);
    assert.deepEqual(gateway.told, ['first']);
  });

  it('for the reply to the end: the answer is kept once', async () => {
    let tries = 0;
    const finish: CheckoutClaims['finish'] = async (...end) => {
      tries += 1;
      const kept = await bed.claims.finish(...end);
      return tries === 1 ? away() : kept;
    };
    const gateway = bed.gateway({ claims: { ...bed.claims, finish } });
    assert.match(said(await gateway.run()), /^200 backend /);
    assert.deepEqual(gateway.told, ['first']);
  });

  it("at the end: the merchant's answer goes out all the same, and a retry finds the order in the session", async () => {
    const gateway = bed.gateway({ claims: { ...AWAY, claim: bed.claims.claim } });
    assert.match(said(await gateway.run()), /^200 backend /);
    assert.deepEqual(gateway.told, ['first', 'unstored']);
    assert.match(said(await bed.gateway().run()), /^in_flight /);
    bed.pass(LEASE_MS);
    assert.match(said(await bed.gateway().run()), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('at an unknown end or one that did not happen: counted, and the lease ends by itself', async () => {
    const gateway = bed.gateway({ claims: { ...AWAY, claim: bed.claims.claim } });
    bed.merchant.next({ acts: false, says: { unknown: 'reset' } }, { acts: false, says: 'not_executed' });
    assert.equal(said(await gateway.run()), 'failed: reset');
    bed.pass(LEASE_MS);
    assert.equal(said(await gateway.run()), 'nobody there');
    assert.deepEqual(gateway.told, [
      ...['first', 'unknown: reset', 'unstored'],
      ...['again', 'lease expired', 'unstored'],
    ]);
    bed.pass(LEASE_MS);
    assert.match(said(await bed.gateway().run()), /^200 backend /);
  });

  it('so slow that the lease is nearly over: the lease is renewed before the merchant is called', async () => {
    let slow = true;
    const claim: CheckoutClaims['claim'] = async (wanted) => {
      const claimed = await bed.claims.claim(wanted);
      if (slow) bed.pass(LEASE_MS - TIMEOUT_MS);
      slow = false;
      return claimed;
    };
    bed.merchant.next({ acts: true, says: 'lost' });
    const gateway = bed.gateway({ claims: { ...bed.claims, claim } });
    await gateway.begin();
    assert.equal(bed.merchant.heard.length, 1);
    bed.pass(TIMEOUT_MS);
    assert.match(said(await bed.gateway().run()), /^in_flight /);
    assert.deepEqual(gateway.told, ['first']);
  });

  it('slow every time: the merchant is not called, and the key is free at once', async () => {
    const claim: CheckoutClaims['claim'] = async (wanted) => {
      const claimed = await bed.claims.claim(wanted);
      bed.pass(LEASE_MS - TIMEOUT_MS);
      return claimed;
    };
    assert.equal(said(await bed.gateway({ claims: { ...bed.claims, claim } }).run()), 'unavailable');
    assert.equal(bed.merchant.heard.length, 0);
    assert.match(said(await bed.gateway().run()), /^200 backend /);
  });
});

describe('a store that loses its data during a call', () => {
  let bed: Bed;
  let empty: Bed;
  beforeEach(() => {
    bed = openBed();
    empty = openBed();
  });
  afterEach(() => Promise.all([bed.close(), empty.close()]));
  /** Claims on a store, and finds another one, without anything in it, at the end. */
  const emptied = () => bed.gateway({ claims: { ...empty.claims, claim: bed.claims.claim } });
  const afterwards = () => bed.gateway({ claims: empty.claims });

  it("gives the merchant's answer, and keeps it", async () => {
    const gateway = emptied();
    assert.match(said(await gateway.run()), /^200 backend /);
    assert.match(said(await afterwards().run()), /^200 kept /);
    assert.equal(said(await afterwards().run({ ...COMPLETE, body: {} })), 'conflict');
    assert.deepEqual(gateway.told, ['first']);
  });

  it('remembers an unknown end: neither this key nor another one on the session is a first call', async () => {
    for (const key of [COMPLETE.key, 'key-2']) {
      const call = { ...COMPLETE, sessionId: `cs_${key}` };
      bed.merchant.next({ acts: true, says: { unknown: 'timeout' } });
      assert.equal(said(await emptied().run(call)), 'failed: timeout');
      assert.match(said(await afterwards().run({ ...call, key })), /^200 session /);
      assert.equal(bed.merchant.orders(call.sessionId), 1);
    }
  });
});
