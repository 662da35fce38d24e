import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hostKey, signingKey } from '../../../src/crypto/signing-key.ts';
import { storedMandate } from '../../../src/mandates/stored-mandate.ts';
import { createPaymentContext, createPurchaseSigner } from '../../../src/payments/delivery/purchase-signer.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { settledResponse } from '../../../src/payments/x402/wire/payment-response.ts';
import { pem } from '../../config/sections/ap2.ts';

const RECORD = {
  ...{ receiptId: 'receipt_1', resourceId: 'report', payId: 'f'.repeat(64), network: 'eip155:1', asset: '0xa' },
  ...{ units: '10000', amount: '0.01', currency: 'USDC', payer: '0xb', payee: '0xc', requestId: 'r' },
} as PaymentRecord;
const BASE = 'https://shop.example';

function payloadOf(jws: string | undefined): Record<string, unknown> {
  return JSON.parse(Buffer.from(jws?.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
}

describe('what is signed of a purchase', () => {
  const key = hostKey(pem(), BASE);
  const failures: unknown[] = [];
  const signer = createPurchaseSigner(
    key,
    BASE,
    (cause) => failures.push(cause),
    () => 1_999,
  );

  it('has no transaction where none is known, and no digest where nothing was delivered', () => {
    const { extensions } = signer.withReceipt(settledResponse(RECORD, 'r'), RECORD);
    const info = extensions?.['offer-receipt']?.info as
      | { readonly receipt: { readonly signature: string } }
      | undefined;
    assert.deepEqual(payloadOf(info?.receipt.signature), {
      ...{ version: 1, network: 'eip155:1', resourceUrl: `${BASE}/api/resources/report/invoke`, payer: '0xb' },
      issuedAt: 1,
    });
    const { payment, ...stated } = payloadOf(signer.statement(RECORD, { state: 'refundDue' }));
    assert.deepEqual(stated, {
      ...{ version: 1, receiptId: 'receipt_1', resourceUrl: `${BASE}/api/resources/report/invoke` },
      ...{ state: 'refundDue', issuedAt: 1 },
    });
    assert.ok(!('transaction' in (payment as object)));
  });

  it('names the refund of what was sent back', () => {
    const refunded = { ...RECORD, transaction: '0x1', refundTransaction: '0x2' };
    const { refund, payment } = payloadOf(signer.statement(refunded, { state: 'refunded' }));
    assert.deepEqual([refund, (payment as { transaction: string }).transaction], [{ transaction: '0x2' }, '0x1']);
  });

  it('is left out where it cannot be signed: the failure is told and the answer stays as it is', () => {
    const fault = new Error('no entropy');
    const told: unknown[] = [];
    const broken = createPurchaseSigner(
      {
        kid: key.kid,
        sign() {
          throw fault;
        },
      },
      BASE,
      (cause) => told.push(cause),
    );
    const response = settledResponse(RECORD, 'r');
    assert.deepEqual(broken.withReceipt(response, RECORD), response);
    assert.equal(broken.statement(RECORD, { state: 'delivered' }), undefined);
    assert.deepEqual(told, [fault, fault]);
    assert.deepEqual(failures, []);
  });
});

describe('what the backend gets of a payment', () => {
  const key = signingKey(pem());
  const of = { issuer: BASE, audience: 'http://127.0.0.1:3000', timeoutMs: 70_000 };
  const contextOf = createPaymentContext(key, of, () => 1_999);

  it('names its mandate by the reference of the receipt', () => {
    const mandate = storedMandate({
      ...{ mode: 'direct', reference: 'ref', referenceSdHash: 'sd', issuer: 'https://wallet.example' },
      ...{ checkoutIssuer: BASE, checkoutId: 'jti', claim: { at: 1, once: ['m'], onceUntil: 2, open: [] } },
    });
    const { mandate: named, state } = payloadOf(contextOf({ ...RECORD, mandate }, 'r'));
    assert.deepEqual([named, state], ['ref', 'reserved']);
  });

  it('lives for a minute after the deadline of the call, until which it may be sent', () => {
    const { iat, exp } = payloadOf(contextOf(RECORD, 'r'));
    assert.deepEqual([iat, exp], [1, 1 + 70 + 60]);
  });

  it('has the key id of the key set, where libraries look it up', () => {
    const [head = ''] = contextOf(RECORD, 'r')?.split('.') ?? [];
    const { alg, kid } = key.publicJwk;
    const typ = 'agent-commerce-payment+jwt';
    assert.deepEqual(JSON.parse(Buffer.from(head, 'base64url').toString()), { alg, kid, typ });
  });
});
