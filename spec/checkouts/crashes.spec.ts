import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import { bytesOf, freshBed, LEASE_MS, LOST, textOf, unknown } from './bed.ts';

const never = <T>(): Promise<T> => new Promise(() => undefined);

/** The part of acp 12.9 that one process can show; the backend ignores keys. */
describe('a gateway that dies', () => {
  const bed = freshBed();
  const claimed: Partial<CheckoutClaims> = { claim: (claim) => bed.claims.claim(claim).then(never<never>) };

  for (const [at, ordered, turns, claims] of [
    ['after the claim', false, [], claimed],
    ['before the request is sent', false, [{ ...LOST, acts: false }], {}],
    ['while the backend works', true, [LOST], {}],
    ['after the answer of the backend', true, [], { finish: never }],
  ] as const)
    it(`${at}: in flight until the lease ends, then ${ordered ? 'found in the session' : 'run once'}; one order`, async () => {
      bed.backend.next(...turns);
      await bed.gateway({ claims }).begin();
      const gateway = bed.gateway();
      assert.equal(textOf(await gateway.run()), 'in_flight 1');
      bed.pass(LEASE_MS - 1);
      assert.equal(textOf(await gateway.run()), 'in_flight 1');
      bed.pass(1);
      const end = await gateway.run();
      assert.match(textOf(end), ordered ? /^200 session / : /^200 backend /);
      assert.deepEqual(bytesOf(await gateway.run()), bytesOf(end));
      assert.equal(bed.backend.orders('cs_1'), 1);
      assert.deepEqual(gateway.reports, ['in_flight', 'in_flight', 'again', 'lease expired', 'done']);
    });

  it('before the claim: the retry is the first', async () => {
    await bed.gateway({ claims: { claim: never } }).begin();
    assert.match(textOf(await bed.gateway().run()), /^200 backend /);
  });

  it('after the answer is kept: the retry gets it at once', async () => {
    const finish: CheckoutClaims['finish'] = (...end) => bed.claims.finish(...end).then(never<boolean>);
    await bed.gateway({ claims: { finish } }).begin();
    assert.match(textOf(await bed.gateway().run()), /^200 kept /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  it('while it reads the session back: the next one reads again', async () => {
    bed.backend.next(unknown(true, 'reset'));
    await bed.gateway().run();
    await bed.gateway({ claims: { finish: never } }).begin();
    bed.pass(LEASE_MS);
    assert.match(textOf(await bed.gateway().run()), /^200 session /);
    assert.equal(bed.backend.orders('cs_1'), 1);
  });

  it('only for a while, after the backend has answered: the answer of the one that took over counts', async () => {
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const finish: CheckoutClaims['finish'] = (...end) => woken.then(() => bed.claims.finish(...end));
    const stopped = bed.gateway({ claims: { finish } });
    const stoppedEnd = stopped.run();
    while (bed.backend.posts.length === 0) await new Promise(setImmediate);
    assert.equal(textOf(await bed.gateway().run()), 'in_flight 1');
    bed.pass(LEASE_MS);
    const found = await bed.gateway().run();
    assert.match(textOf(found), /^200 session /);
    wake();
    assert.equal(textOf(await stoppedEnd), 'in_flight 1');
    assert.deepEqual(stopped.reports, ['first', 'fenced']);
    assert.deepEqual(bytesOf(await stopped.run()), bytesOf(found));
    assert.equal(bed.backend.orders('cs_1'), 1);
  });
});
