import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import {
  away,
  COMPLETE,
  freshBed,
  LEASE_MS,
  LOST,
  NOT_EXECUTED,
  OTHER_KEY,
  TIMEOUT_MS,
  textOf,
  unknown,
} from './bed.ts';

/** The ends of attempts are lost. */
const NO_ENDS: Partial<CheckoutClaims> = { finish: away, unknown: away, release: away };

/** acp 12.8: what a store that is away changes. */
describe('a store that is away', () => {
  const bed = freshBed();
  /** Claims take so long, all of them or the first one. */
  const slowClaims = (ms: number, most = Number.POSITIVE_INFINITY): Partial<CheckoutClaims> => {
    let claims = 0;
    return {
      async claim(wanted) {
        const claimed = await bed.claims.claim(wanted);
        claims += 1;
        if (claims <= most) bed.pass(ms);
        return claimed;
      },
    };
  };

  it('at the claim: the backend is not called', async () => {
    const gateway = bed.gateway({ claims: { claim: away } });
    assert.equal(textOf(await gateway.run()), 'unavailable');
    assert.equal(bed.backend.posts.length, 0);
    assert.deepEqual(gateway.reports, ['unavailable']);
  });

  it('for the reply to a claim only: the claim is sent once more, and is recognised', async () => {
    const owners: string[] = [];
    const claim: CheckoutClaims['claim'] = async (wanted) => {
      owners.push(wanted.owner);
      const claimed = await bed.claims.claim(wanted);
      return owners.length === 1 ? away() : claimed;
    };
    const gateway = bed.gateway({ claims: { claim } });
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.equal(new Set(owners).size, 1);
    assert.equal(owners.length, 2);
    assert.deepEqual(gateway.reports, ['first']);
  });

  it('for as long as a command may take: the claim is not repeated', async () => {
    let sent = 0;
    const claim = async (): Promise<never> => {
      sent += 1;
      bed.pass(500);
      return away();
    };
    assert.equal(textOf(await bed.gateway({ claims: { claim } }).run()), 'unavailable');
    assert.equal(sent, 1);
  });

  it('for a moment at the end: the answer is kept at the third try, within about a second', async () => {
    let tries = 0;
    const finish: CheckoutClaims['finish'] = (...end) => {
      tries += 1;
      return tries < 3 ? away() : bed.claims.finish(...end);
    };
    const gateway = bed.gateway({ claims: { finish } });
    const began = bed.now();
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.ok(bed.now() - began <= 1_500, `${bed.now() - began} ms`);
    assert.match(textOf(await bed.gateway().run()), /^200 kept /);
    assert.deepEqual(gateway.reports, ['first']);
  });

  it('for the reply to the end: the answer is kept once', async () => {
    let tries = 0;
    const finish: CheckoutClaims['finish'] = async (...end) => {
      tries += 1;
      const kept = await bed.claims.finish(...end);
      return tries === 1 ? away() : kept;
    };
    const gateway = bed.gateway({ claims: { finish } });
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.deepEqual(gateway.reports, ['first']);
  });

  it("at the end: the backend's answer is sent all the same, and a retry finds the order in the session", async () => {
    const gateway = bed.gateway({ claims: NO_ENDS });
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.deepEqual(gateway.reports, ['first', 'unstored']);
    assert.match(textOf(await bed.gateway().run()), /^in_flight /);
    bed.pass(LEASE_MS);
    assert.match(textOf(await bed.gateway().run()), /^200 session /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  it('at an unknown end or one that did not happen: counted, and the lease ends by itself', async () => {
    const gateway = bed.gateway({ claims: NO_ENDS });
    bed.backend.next(unknown(false, 'reset'), NOT_EXECUTED);
    assert.equal(textOf(await gateway.run()), 'failed: reset');
    bed.pass(LEASE_MS);
    assert.equal(textOf(await gateway.run()), 'unreachable');
    const [first, second] = [
      ['first', 'unknown: reset', 'unstored'],
      ['again', 'lease expired', 'unstored'],
    ];
    assert.deepEqual(gateway.reports, [first, second].flat());
    bed.pass(LEASE_MS);
    assert.match(textOf(await bed.gateway().run()), /^200 backend /);
  });

  it('so slow that the lease is nearly over: the lease is renewed before the backend is called', async () => {
    bed.backend.next(LOST);
    const gateway = bed.gateway({ claims: slowClaims(LEASE_MS - TIMEOUT_MS, 1) });
    await gateway.begin();
    assert.equal(bed.backend.posts.length, 1);
    bed.pass(TIMEOUT_MS);
    assert.match(textOf(await bed.gateway().run()), /^in_flight /);
    assert.deepEqual(gateway.reports, ['first']);
  });

  it('slow every time: the backend is not called, and the key is free at once', async () => {
    assert.equal(textOf(await bed.gateway({ claims: slowClaims(LEASE_MS - TIMEOUT_MS) }).run()), 'unavailable');
    assert.equal(bed.backend.posts.length, 0);
    assert.match(textOf(await bed.gateway().run()), /^200 backend /);
  });
});

describe('a store that loses its data during a call', () => {
  const bed = freshBed();
  const empty = freshBed();
  /** Claims on a store, and ends on another one without anything in it. */
  const emptied = () => {
    const { finish, unknown, release, own, ownership } = empty.claims;
    return bed.gateway({ claims: { finish, unknown, release, own, ownership } });
  };
  const afterwards = () => bed.gateway({ claims: empty.claims });

  it("gives the backend's answer, and keeps it", async () => {
    const gateway = emptied();
    assert.match(textOf(await gateway.run()), /^200 backend /);
    assert.match(textOf(await afterwards().run()), /^200 kept /);
    assert.equal(textOf(await afterwards().run({ ...COMPLETE, body: {} })), 'conflict');
    assert.deepEqual(gateway.reports, ['first']);
  });

  it('remembers an unknown end: neither this key nor another one on the session is a first call', async () => {
    for (const { key } of [COMPLETE, OTHER_KEY]) {
      const call = { ...COMPLETE, sessionId: `cs_${key}` };
      bed.backend.next(unknown(true));
      assert.equal(textOf(await emptied().run(call)), 'failed: timeout');
      assert.match(textOf(await afterwards().run({ ...call, key })), /^200 session /);
      assert.equal(bed.backend.orders(call.sessionId), 1);
    }
  });
});
