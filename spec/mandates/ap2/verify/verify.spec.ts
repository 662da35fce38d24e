import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createIssuedCheckouts } from '../../../../src/mandates/ap2/checkout/checkout-mint.ts';
import type { MandateVerdict, RefusedMandate } from '../../../../src/mandates/ap2/model/verdict.ts';
import { createMandateVerifier } from '../../../../src/mandates/ap2/verify/verify.ts';
import { withClaims, withMandate } from '../../../support/ap2/hands.ts';
import { PROVIDER, publishedJwk } from '../../../support/ap2/keys.ts';
import { createMint } from '../../../support/ap2/mint.ts';
import { hashed } from '../../../support/ap2/oracle.ts';
import { NOW, profileWith, purchaseWith } from '../../../support/ap2/purchase.ts';
import { trustIn } from '../../../support/ap2/trust.ts';
import { verifierFor } from '../../../support/ap2/verifier.ts';
import type { Presentation } from '../../../support/ap2/wishes.ts';

const mint = createMint();
const verify = verifierFor(mint);

async function refused(verdict: Promise<MandateVerdict>): Promise<RefusedMandate> {
  const told = await verdict;
  assert.ok(told.kind === 'refused');
  return told;
}

/** What a receipt for it refers to. */
function referenceOf({ segments }: Presentation) {
  const leaf = segments.at(-1) ?? '';
  return { reference: hashed(leaf.split('~')[0] ?? ''), referenceSdHash: hashed(leaf) };
}

describe('the verdict on a mandate', () => {
  it('names nothing of what could not be read', async () => {
    for (const header of [undefined, '', 'AAAA', '!'])
      assert.deepEqual(
        { ...(await refused(verify(header))), reason: '' },
        { kind: 'refused', reason: '', reference: undefined, issuer: undefined },
      );
  });

  it('says that there was none, that it was illegible, or that it came in two forms', async () => {
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust: trustIn(mint.parties),
      checkoutKeys: [publishedJwk(mint.parties.checkout)],
      minted: createIssuedCheckouts(),
    });
    const said = async (kind: 'none' | 'illegible' | 'conflicting') =>
      (await refused(verifier.verify({ kind }, purchaseWith(), NOW))).reason;
    assert.deepEqual(await Promise.all((['none', 'illegible', 'conflicting'] as const).map(said)), [
      'mandate_required',
      'envelope_encoding',
      'envelope_encoding',
    ]);
  });

  it('refers to the leaf of the checkout mandate, and names no issuer before a signature was good', async () => {
    const made = mint.autonomous({ issuer: { key: mint.parties.stranger, iss: PROVIDER } });
    const { reference, issuer, mandate } = await refused(verify(made.header));
    assert.deepEqual([reference, issuer, mandate], [referenceOf(made), undefined, 'checkout']);
  });

  it('names the issuer once its signature was good, whatever is wrong behind it', async () => {
    for (const hands of [{ closed: withClaims({ aud: 'other' }) }, { closed: withMandate({ checkout_hash: 'x' }) }]) {
      const made = mint.autonomous({ hands });
      const { reference, issuer } = await refused(verify(made.header));
      assert.deepEqual([reference, issuer], [referenceOf(made), PROVIDER]);
    }
  });

  it('refers to the checkout mandate too where the payment mandate is wrong', async () => {
    const made = mint.autonomous({ payment: true, hands: { closedPayment: withMandate({ payee: undefined }) } });
    const { reference, issuer, mandate } = await refused(verify(made.header));
    assert.deepEqual([reference, issuer, mandate], [referenceOf(made), PROVIDER, 'payment']);
  });

  it('gives a reason for the log where the keys of an issuer cannot be had, and blames nobody', async () => {
    const cause = new Error('no answer');
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust: { find: () => ({ kind: 'unavailable', cause }) },
      checkoutKeys: [publishedJwk(mint.parties.checkout)],
      minted: createIssuedCheckouts(),
    });
    const carried = { kind: 'text', value: mint.direct().header } as const;
    const told = await refused(verifier.verify(carried, purchaseWith(), NOW));
    assert.deepEqual([told.reason, told.cause], ['provider_unavailable', cause]);
  });

  it('is no verdict where the gateway itself fails', async () => {
    const bug = new TypeError('a bug');
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust: {
        find: () => {
          throw bug;
        },
      },
      checkoutKeys: [],
      minted: createIssuedCheckouts(),
    });
    const carried = { kind: 'text', value: mint.direct().header } as const;
    await assert.rejects(verifier.verify(carried, purchaseWith(), NOW), bug);
  });

  it('cannot be had with two checkout keys of one id', () => {
    const jwk = publishedJwk(mint.parties.checkout);
    const parts = { profile: profileWith(), trust: trustIn(mint.parties), minted: createIssuedCheckouts() };
    assert.throws(() => createMandateVerifier({ ...parts, checkoutKeys: [jwk, jwk] }), /one kid/);
  });
});
