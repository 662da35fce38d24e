import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import { CHECKOUT_CHANNEL } from '../../src/checkouts/steps.ts';
import { type Bed, bytesOf, COMPLETE, openBed, said, TIMEOUT_MS } from './bed.ts';

const LEASE_MS = TIMEOUT_MS + 3_000;
const never = <T>(): Promise<T> => new Promise(() => undefined);

/**
 * Where a gateway dies, and what is left of it: how it reaches the store, and what the merchant
 * does meanwhile.
 */
const DEATHS: readonly {
  readonly at: string;
  readonly ordered: boolean;
  claims?(claims: CheckoutClaims): CheckoutClaims;
}[] = [
  {
    at: 'after the claim',
    ordered: false,
    claims: (claims) => ({ ...claims, claim: (claim) => claims.claim(claim).then(never<never>) }),
  },
  { at: 'before the request is sent', ordered: false },
  { at: 'while the merchant works', ordered: true },
  {
    at: 'after the answer of the merchant',
    ordered: true,
    claims: (claims) => ({ ...claims, finish: never }),
  },
];

/** What of acp 12.9 one process can show; the merchant looks at no key. */
describe('a gateway that dies', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
  });
  afterEach(() => bed.close());

  for (const { at, ordered, claims = (same: CheckoutClaims) => same } of DEATHS)
    it(`${at}: in flight until the lease ends, then ${ordered ? 'found in the session' : 'run once'}; one order`, async () => {
      if (!at.startsWith('after')) bed.merchant.next({ acts: ordered, says: 'lost' });
      await bed.gateway({ claims: claims(bed.claims) }).begin();
      const gateway = bed.gateway();
      assert.equal(said(await gateway.run()), 'in_flight 1');
      bed.pass(LEASE_MS - 1);
      assert.equal(said(await gateway.run()), 'in_flight 1');
      bed.pass(1);
      const end = await gateway.run();
      assert.match(said(end), ordered ? /^200 session / : /^200 backend /);
      assert.deepEqual(bytesOf(await gateway.run()), bytesOf(end));
      assert.equal(bed.merchant.orders('cs_1'), 1);
      assert.deepEqual(gateway.told, ['in_flight', 'in_flight', 'again', 'lease expired', 'done']);
    });

  it('before the claim: the retry is the first', async () => {
    await bed.gateway({ claims: { ...bed.claims, claim: never } }).begin();
    assert.match(said(await bed.gateway().run()), /^200 backend /);
  });

  it('after the answer is kept: the retry is given it at once', async () => {
    const finish: CheckoutClaims['finish'] = (...end) => bed.claims.finish(...end).then(never<boolean>);
    await bed.gateway({ claims: { ...bed.claims, finish } }).begin();
    assert.match(said(await bed.gateway().run()), /^200 kept /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('while it reads the session back: the next one reads again', async () => {
    bed.merchant.next({ acts: true, says: { unknown: 'reset' } });
    await bed.gateway().run();
    await bed.gateway({ claims: { ...bed.claims, finish: never } }).begin();
    bed.pass(LEASE_MS);
    assert.match(said(await bed.gateway().run()), /^200 session /);
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });

  it('only for a while, after the merchant has answered: whoever took over has the word', async () => {
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const finish: CheckoutClaims['finish'] = (...end) => woken.then(() => bed.claims.finish(...end));
    const stopped = bed.gateway({ claims: { ...bed.claims, finish } });
    const stoppedEnd = stopped.run();
    while (bed.merchant.heard.length === 0) await new Promise(setImmediate);
    assert.equal(said(await bed.gateway().run()), 'in_flight 1');
    bed.pass(LEASE_MS);
    const found = await bed.gateway().run();
    assert.match(said(found), /^200 session /);
    wake();
    assert.equal(said(await stoppedEnd), 'in_flight 1');
    assert.deepEqual(stopped.told, ['first', 'fenced']);
    assert.deepEqual(bytesOf(await stopped.run()), bytesOf(found));
    assert.equal(bed.merchant.orders('cs_1'), 1);
  });
});

describe('the steps of a call', () => {
  const steps: unknown[] = [];
  const listen = (message: unknown): void => void steps.push(message);
  let bed: Bed;
  beforeEach(() => {
    bed = openBed();
    steps.length = 0;
    subscribe(CHECKOUT_CHANNEL, listen);
  });
  afterEach(() => {
    unsubscribe(CHECKOUT_CHANNEL, listen);
    return bed.close();
  });

  it('are told in order, with the operation and nothing else', async () => {
    bed.merchant.next({ acts: false, says: { unknown: 'timeout' } });
    await bed.gateway().run();
    await bed.gateway().run();
    const { operation } = COMPLETE;
    const told = ['before_claim', 'after_claim', 'before_send', 'after_merchant'];
    const again = ['before_claim', 'after_claim', 'after_read', 'before_send', 'after_merchant', 'after_finish'];
    assert.deepEqual(
      steps,
      [...told, ...again].map((step) => ({ step, operation })),
    );
  });
});
