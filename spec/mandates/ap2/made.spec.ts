import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { amountRange, budget, recurrence, reference } from '../../../tools/mandate/maker/constraints.ts';
import { BANK, KID_ONLY, PROVIDER } from '../../support/ap2/keys.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { hashed } from '../../support/ap2/oracle.ts';
import { freePurchase } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import type { Presentation } from '../../support/ap2/wishes.ts';

/**
 * The verifier accepts what the maker makes. Both were checked with the independent reader of
 * `maker.spec.ts`.
 */
const mint = createMint();
const verify = verifierFor(mint);
const { kidOnly } = mint.parties;
const paymentConstraints = (hash: string) => [
  amountRange('USDC', 30_000),
  budget('USDC', 0.03),
  recurrence('ON_DEMAND', 2),
  reference(hash),
];

const KINDS: readonly (readonly [kind: string, made: Presentation, mode: string, issuer: string])[] = [
  ['an autonomous mandate', mint.autonomous(), 'autonomous', PROVIDER],
  ['one that pays', mint.autonomous({ payment: true }), 'autonomous', PROVIDER],
  ['one of a sub-agent', mint.autonomous({ delegated: true }), 'autonomous', PROVIDER],
  ['one of a sub-agent that pays', mint.autonomous({ delegated: true, payment: true }), 'autonomous', PROVIDER],
  ['one that may be used again', mint.autonomous({ payment: true, paymentConstraints }), 'autonomous', PROVIDER],
  [
    'one of an issuer without iss',
    mint.autonomous({ issuer: { key: kidOnly, iss: undefined } }),
    'autonomous',
    KID_ONLY,
  ],
  ['a direct mandate', mint.direct(), 'direct', PROVIDER],
  ['a direct one that pays', mint.direct({ payment: true }), 'direct', PROVIDER],
  ['one under a credential', mint.credential(), 'direct', BANK],
];

describe('a mandate of the test maker', () => {
  for (const [kind, made, mode, issuer] of KINDS)
    it(`is accepted: ${kind}`, async () => {
      const verdict = await verify(made.header);
      assert.equal(verdict.kind, 'accepted', verdict.kind === 'refused' ? verdict.reason : '');
      if (verdict.kind !== 'accepted') return;
      assert.deepEqual([verdict.mode, verdict.issuer, verdict.checkoutId], [mode, issuer, made.jti]);
      const leaf = made.segments.at(-1) ?? '';
      const [jwt = ''] = leaf.split('~');
      assert.equal(verdict.reference, hashed(jwt));
      assert.equal(verdict.referenceSdHash, hashed(leaf));
      assert.equal(verdict.mandateId, hashed(jwt.slice(0, jwt.lastIndexOf('.'))));
      const ids = [leaf, made.paymentSegments.at(-1)].filter((one) => one !== undefined).map(identity);
      assert.deepEqual([...verdict.claim.once].sort(), [...ids.map((id) => `m:${id}`), `j:${made.jti}`].sort());
      const opened = [...made.open.checkout, ...made.open.payment].map(identity);
      assert.deepEqual(verdict.claim.open.map(({ id }) => id).sort(), opened.sort());
    });

  it('is accepted for what costs nothing', async () => {
    const purchase = freePurchase();
    const verdict = await verify(mint.autonomous({ purchase }).header, { purchase });
    assert.equal(verdict.kind, 'accepted', verdict.kind === 'refused' ? verdict.reason : '');
  });
});

function identity(segment: string): string {
  const [jwt = ''] = segment.split('~');
  return hashed(jwt.slice(0, jwt.lastIndexOf('.')));
}
