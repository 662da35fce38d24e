import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withClaims, withDisclosureTexts, withMandate } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { hashed, readPresentation } from '../../support/ap2/oracle.ts';
import { AUDIENCE, MERCHANT, NOW } from '../../support/ap2/purchase.ts';

/** The maker of mandates, checked by a reader that shares no line with it. */
const mint = createMint();
const { provider, bank, stranger, agent, subAgent } = mint.parties;

describe('the maker of mandates', () => {
  it('makes an open mandate that names the agent, and a closed one that the agent signed', () => {
    const made = mint.autonomous();
    const [open, closed] = readPresentation(made.payload, provider.publicJwk);
    assert.equal(open?.header['kid'], provider.publicJwk.kid);
    assert.equal(open?.mandate?.['vct'], 'mandate.checkout.open.1');
    const { kty, crv, x, y } = agent.publicJwk;
    assert.deepEqual(open?.mandate?.['cnf'], { jwk: { kty, crv, x, y } }, 'four public members and no more');
    const [items, merchants] = (open?.mandate?.['constraints'] ?? []) as readonly Record<string, unknown>[];
    const acceptable = [{ id: 'market_report', title: 'Market report' }];
    assert.deepEqual(items?.['items'], [{ id: 'line_1', acceptable_items: acceptable, quantity: 1 }]);
    assert.deepEqual(merchants?.['allowed'], [MERCHANT]);
    assert.equal(closed?.header['typ'], 'kb+sd-jwt');
    assert.equal(closed?.claims['aud'], AUDIENCE);
    assert.equal(closed?.claims['nonce'], made.jti);
    assert.equal(closed?.mandate?.['checkout_jwt'], made.checkoutJwt);
    assert.equal(closed?.mandate?.['checkout_hash'], hashed(made.checkoutJwt));
  });

  it('ties the payment mandate to the open checkout mandate and to the checkout', () => {
    const made = mint.autonomous({ payment: true });
    const [root] = readPresentation(made.payload, provider.publicJwk);
    const [open, closed] = readPresentation(made.paymentMandate ?? '', provider.publicJwk);
    const limits = (open?.mandate?.['constraints'] ?? []) as readonly Record<string, unknown>[];
    const reference = limits.find(({ type }) => type === 'payment.reference');
    assert.equal(reference?.['conditional_transaction_id'], root?.sdHash);
    assert.equal(closed?.mandate?.['transaction_id'], hashed(made.checkoutJwt));
    assert.deepEqual(closed?.mandate?.['payment_amount'], { amount: 10_000, currency: 'USDC' });
  });

  it('lets an agent delegate to another', () => {
    const made = mint.autonomous({ delegated: true });
    const read = readPresentation(made.payload, provider.publicJwk);
    assert.deepEqual(
      read.map(({ header }) => header['typ']),
      ['dc+sd-jwt', 'kb+sd-jwt+kb', 'kb+sd-jwt'],
    );
    const cnf = read[1]?.mandate?.['cnf'] as { readonly jwk: { readonly x: string } };
    assert.equal(cnf.jwk.x, subAgent.publicJwk.x);
  });

  it('makes direct mandates, and such under the credential of a bank', () => {
    const [direct] = readPresentation(mint.direct().payload, provider.publicJwk);
    assert.equal(direct?.claims['exp'], NOW + 290);
    const [credential, closed] = readPresentation(mint.credential().payload, bank.publicJwk);
    assert.equal(credential?.claims['vct'], 'com.emvco.dpc');
    assert.equal(closed?.mandate?.['vct'], 'mandate.checkout.1');
  });

  it('uses no salt and no checkout twice', () => {
    const [first, second] = [mint.autonomous(), mint.autonomous()];
    assert.notEqual(first.jti, second.jti);
    const salts = [first, second].flatMap(({ segments }) => segments.flatMap(saltsOf));
    assert.equal(new Set(salts).size, salts.length);
    for (const salt of salts) assert.equal(Buffer.from(salt, 'base64url').length, 16);
  });

  it('can be made to err, and the reader notices', () => {
    const refused = (text: string, key = provider.publicJwk) => assert.throws(() => readPresentation(text, key));
    refused(mint.autonomous().payload, stranger.publicJwk);
    refused(mint.autonomous({ hands: { closed: { signer: stranger } } }).payload);
    refused(mint.autonomous({ hands: { closed: withClaims({ sd_hash: hashed('another') }) } }).payload);
    refused(mint.autonomous({ hands: { open: withDisclosureTexts((texts) => [...texts, 'WyJ4IiwxXQ']) } }).payload);
    const [, closed] = readPresentation(
      mint.autonomous({ hands: { closed: withMandate({ checkout_hash: undefined }) } }).payload,
      provider.publicJwk,
    );
    assert.equal(closed?.mandate?.['checkout_hash'], undefined);
  });
});

function saltsOf(segment: string): readonly string[] {
  const texts = segment.slice(0, -1).split('~').slice(1);
  return texts
    .filter((text) => text !== '')
    .map((text) => String((JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[])[0]));
}
