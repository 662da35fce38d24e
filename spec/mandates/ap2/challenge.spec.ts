import assert from 'node:assert/strict';
import { createHash, verify } from 'node:crypto';
import { describe, it } from 'node:test';
import { readSigningKey } from '../../../src/crypto/signing-key.ts';
import { createChallenger, createReceiptSigner } from '../../../src/mandates/ap2/challenge.ts';
import { createIssuedCheckouts } from '../../../src/mandates/ap2/checkout.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { AUDIENCE, checkoutOf, freePurchase, NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';

const mint = createMint();
const { checkout } = mint.parties;
const reading = readSigningKey(checkout.pem);
assert.ok(reading.ok);
const KEY = { ...reading.key, publicJwk: { ...reading.key.publicJwk, kid: checkout.publicJwk.kid } };
const AT = NOW * 1_000 + 999;

/** The one entry of a challenge. */
function asked(purchase = purchaseWith(), profile = profileWith(), issued = createIssuedCheckouts()) {
  const challenge = createChallenger({
    profile,
    key: KEY,
    minted: issued,
    issuers: ['https://agents.provider.example'],
  });
  const { required, ...more } = JSON.parse(challenge(purchase, [], AT));
  assert.deepEqual(more, {});
  assert.equal(required.length, 1);
  return required[0];
}

/** Checked with node:crypto alone. */
function opened(jwt: string): { readonly header: Record<string, unknown>; readonly claims: Record<string, unknown> } {
  const [head = '', payload = '', signature = ''] = jwt.split('.');
  const key = { key: checkout.publicKey, dsaEncoding: 'ieee-p1363' } as const;
  assert.ok(verify('sha256', Buffer.from(`${head}.${payload}`), key, Buffer.from(signature, 'base64url')));
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  return { header: read(head), claims: read(payload) };
}

describe('a challenge (ap2 7.4)', () => {
  it('states what a mandate needs, and hands out a fresh checkout', () => {
    const entry = asked();
    const { nonce, checkoutJwt, checkoutHash, ...others } = entry;
    assert.deepEqual(others, {
      method: 'ap2',
      version: '0.2.0',
      profile: 'agent-commerce/ap2/checkout/v1',
      audience: AUDIENCE,
      expiresAt: '2026-11-20T12:05:00.000Z',
      algorithms: ['ES256'],
      paymentMandate: 'optional',
      bindPaymentNonce: false,
      issuers: ['https://agents.provider.example'],
      constraints: [
        ...['checkout.allowed_merchants', 'checkout.line_items', 'payment.amount_range', 'payment.allowed_payees'],
        ...['payment.allowed_payment_instruments', 'payment.allowed_pisps', 'payment.execution_date'],
        ...['payment.reference', 'payment.budget', 'payment.agent_recurrence'],
      ],
      maxEnvelopeBytes: 12_288,
    });
    assert.equal(Buffer.from(nonce, 'base64url').length, 16);
    assert.equal(checkoutHash, createHash('sha256').update(checkoutJwt).digest('base64url'));
  });

  it('signs the whole call, as an independent signer by ap2 7.2 does', () => {
    for (const purchase of [purchaseWith(), freePurchase()]) {
      const { nonce, checkoutJwt } = asked(purchase);
      const { header, claims } = opened(checkoutJwt);
      const expected = checkoutOf(purchase, profileWith(), { now: NOW, jti: nonce, kid: checkout.publicJwk.kid });
      assert.deepEqual(header, expected.header);
      const exact = { ...expected.claims, iat_ms: NOW * 1_000 + 999 };
      assert.deepEqual({ ...claims, id: undefined }, { ...exact, id: undefined });
      assert.match(String(claims['id']), /^chk_[A-Za-z0-9_-]{8}$/);
    }
  });

  it('never hands out the same checkout twice', () => {
    const nonces = new Set(Array.from({ length: 100 }, () => asked().nonce));
    assert.equal(nonces.size, 100);
  });

  it('states the policy of the merchant', () => {
    const policy = { paymentMandate: 'required', bindPaymentNonce: true } as const;
    const paid = asked(purchaseWith(), profileWith({ policy }));
    assert.deepEqual([paid.paymentMandate, paid.bindPaymentNonce], ['required', true]);
    const free = asked(freePurchase(), profileWith({ policy }));
    assert.deepEqual([free.paymentMandate, free.bindPaymentNonce], ['none', false]);
  });

  it('is answered with a mandate that is accepted until its checkout is over', async () => {
    const issued = createIssuedCheckouts();
    const verified = verifierFor(mint, { minted: issued });
    const { checkoutJwt } = asked(purchaseWith(), profileWith(), issued);
    const { header } = mint.autonomous({ checkoutJwt, now: NOW + 10, payment: true });
    assert.equal((await verified(header, { now: NOW + 10 })).kind, 'accepted');
    const { header: late } = mint.autonomous({ checkoutJwt, now: NOW + 360 });
    const refused = await verified(late, { now: NOW + 360 });
    assert.equal(refused.kind === 'refused' && refused.reason, 'checkout_expired');
  });

  it('is younger than a register that began within its second, also for a gateway that did not sign it', async () => {
    const born = NOW * 1_000 + 998;
    const store = openSqliteStore({
      path: ':memory:',
      limits: { eventsMaxLength: 1, receiptsMaxLength: 1 },
      now: () => born,
    });
    const { header } = mint.autonomous({ checkoutJwt: asked().checkoutJwt, now: NOW + 1 });
    const verdict = await verifierFor(mint)(header, { now: NOW + 0.999 });
    assert.ok(verdict.kind === 'accepted');
    assert.equal((await store.mandates.reserve('call', verdict.claim)).kind, 'reserved');
    await store.close();
  });

  it('is remembered until its checkout ends, so that its signature is not checked again', () => {
    const issued = createIssuedCheckouts();
    const { checkoutHash } = asked(purchaseWith(), profileWith(), issued);
    assert.equal(issued.has(checkoutHash, NOW + 299), true);
    assert.equal(issued.has(checkoutHash, NOW + 300), false);
  });

  it('throws for a price that has no minor units', () => {
    const purchase = purchaseWith({ price: { amount: '0.0000001', currency: 'USDC' } });
    assert.throws(() => asked(purchase), /no minor units in USDC/);
  });
});

describe('a receipt (ap2 13)', () => {
  const signer = createReceiptSigner({ issuer: AUDIENCE, key: KEY });
  const mandate = { reference: 'r'.repeat(43), referenceSdHash: 's'.repeat(43) };
  const about = { iss: AUDIENCE, iat: NOW, reference: mandate.reference, reference_sd_hash: mandate.referenceSdHash };

  it('names the call, and the transaction that paid for it', () => {
    const { header, claims } = opened(signer.accepted(mandate, { id: 'req_1', transaction: '0xabc' }, AT));
    assert.deepEqual(header, { alg: 'ES256', typ: 'ap2-receipt+jwt', kid: checkout.publicJwk.kid });
    const success = { status: 'Success', result: 'success', order_id: 'req_1' };
    assert.deepEqual(claims, { ...about, ...success, network_confirmation_id: '0xabc' });
    assert.deepEqual(opened(signer.accepted(mandate, { id: 'req_1' }, AT)).claims, { ...about, ...success });
  });

  it('states why a mandate was refused, in AP2’s terms and the gateway’s', () => {
    const failure = { ...about, status: 'Error', result: 'error' };
    for (const [reason, error] of [
      ['invalid_signature', 'invalid_credential'],
      ['constraint_unresolved', 'unresolved_constraint'],
      ['unsupported_version', 'mandates_not_supported'],
      ['replayed', 'invalid_mandate'],
    ] as const) {
      const { claims } = opened(signer.rejected(mandate, reason, AT));
      assert.deepEqual(claims, { ...failure, error, error_description: reason });
    }
    const { claims } = opened(signer.rejected(mandate, 'provider_unavailable', AT));
    assert.deepEqual(claims, { ...failure, error_description: 'provider_unavailable' });
  });

  it('is no checkout, though the same key signed it', async () => {
    const checkoutJwt = signer.accepted(mandate, { id: 'req_1' }, AT);
    const verdict = await verifierFor(mint)(mint.autonomous({ checkoutJwt }).header);
    assert.equal(verdict.kind === 'refused' && verdict.reason, 'checkout_signature_invalid');
  });
});
