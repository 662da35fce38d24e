import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { type PaymentRequired, x402Client } from '@x402/fetch';
import { challengeFor } from '../../../../src/payments/x402/wire/challenge.ts';
import { decodeProof, encodeProof } from '../../../../src/payments/x402/wire/header-codec.ts';
import {
  MAX_CHALLENGE_HEADER_BYTES,
  type PricedResource,
} from '../../../../src/payments/x402/wire/payment-required.ts';
import { encodePaymentResponse } from '../../../../src/payments/x402/wire/payment-response.ts';
import { freshAccount, freshAddress, offerFor, PRICE_UNITS, RESOURCE_URL, termsFor } from '../signing.ts';

const terms = termsFor();
const report: PricedResource = {
  id: 'report',
  name: 'Market "report"',
  description: 'Prices of one city — täglich',
  mimeType: 'text/csv',
  pricing: { type: 'fixed', amount: '0.01', currency: 'TUSD', units: PRICE_UNITS },
};
const template = challengeFor(report, terms, 'https://shop.example');
const EXPIRES = '2026-11-20T12:00:00.000Z';
const TOKEN = 'T0-_'.repeat(18);
const facts = (requestId: string, token = TOKEN) => ({ requestId, expiresAt: EXPIRES, token });
const REFUSAL = {
  code: 'PAYMENT_INVALID',
  reason: 'insufficient_funds',
  message: 'The payment proof was refused.',
  retryable: false,
} as const;

describe('the challenge of a paid resource', () => {
  it('is the payment-required envelope of the specification', () => {
    const { body, header } = template.fresh(facts('req_1'));
    const required = decodePaymentRequiredHeader(header);
    assert.deepEqual(JSON.parse(body), {
      status: 'payment-required',
      code: 'PAYMENT_REQUIRED',
      requestId: 'req_1',
      resourceId: 'report',
      message: 'Payment of 0.01 TUSD is required for Market "report" (report).',
      payment: {
        provider: 'x402',
        version: '2',
        amount: '0.01',
        currency: 'TUSD',
        destination: terms.payTo,
        network: terms.network,
        asset: terms.asset,
        expiresAt: EXPIRES,
        accepts: [offerFor(terms)],
        envelope: required,
      },
    });
    assert.deepEqual(required.accepts, [offerFor(terms)]);
    assert.deepEqual(required.resource, {
      url: RESOURCE_URL,
      description: report.description,
      mimeType: report.mimeType,
    });
    assert.equal(required.error, undefined);
  });

  it('declares in the document that settlement comes first, and that a payment may be named', () => {
    const { document } = template.fresh(facts('req_1'));
    const { accepts, extensions } = JSON.parse(document);
    assert.deepEqual(accepts[0].extra, {
      name: terms.assetName,
      version: terms.assetVersion,
      assetTransferMethod: 'eip3009',
      paymentFlow: 'upfront',
    });
    assert.equal(extensions['payment-identifier'].info.required, false);
  });

  it('has the reason of a refusal in body and document', () => {
    const { body, header, document } = template.refused(facts('req_2'), REFUSAL);
    const envelope = JSON.parse(body);
    assert.deepEqual(envelope.error, REFUSAL);
    assert.equal(envelope.payment.envelope.error, 'insufficient_funds');
    assert.equal(decodePaymentRequiredHeader(header).error, 'insufficient_funds');
    assert.deepEqual(JSON.parse(document), envelope.payment.envelope);
    const fresh = JSON.parse(template.fresh(facts('req_2')).body);
    delete envelope.error;
    delete envelope.payment.envelope.error;
    assert.deepEqual(envelope, fresh);
  });

  it('carries the token in every form, of at most 200 bytes with its extension', () => {
    const extension = { info: { token: TOKEN }, schema: { type: 'object' } };
    const forms = [template.fresh(facts('req_1')), template.refused(facts('req_1'), REFUSAL)];
    for (const { body, header, document, asciiDocument, envelope } of forms) {
      const documents = [JSON.parse(document), JSON.parse(asciiDocument), decodePaymentRequiredHeader(header)];
      for (const text of [body, envelope]) documents.push(JSON.parse(text).payment.envelope);
      for (const { extensions } of documents) assert.deepEqual(extensions['agent-commerce-buyer'], extension);
      const bare = JSON.parse(document);
      delete bare.extensions['agent-commerce-buyer'];
      assert.ok(Buffer.byteLength(document) - Buffer.byteLength(JSON.stringify(bare)) <= 200);
    }
  });

  it('splices the token at any position and behind any description', () => {
    for (let length = 0; length < 12; length += 1)
      for (const letter of ['x', 'ü', '€', '😀', '_']) {
        const described = { ...report, description: letter.repeat(letter === '_' ? 100 + length : length) };
        const { header, document } = challengeFor(described, terms, 'https://shop.example').fresh(facts('req_1'));
        assert.equal(Buffer.from(header, 'base64').toString(), document);
        assert.equal(Buffer.from(document).toString('base64'), header, 'in canonical spelling');
        assert.equal(JSON.parse(document).extensions['agent-commerce-buyer'].info.token, TOKEN);
        assert.equal(JSON.parse(document).resource.description, described.description);
      }
  });

  it('stays well-formed whatever the request id holds', () => {
    const hostile = 'x","code":"FREE"\\';
    assert.equal(JSON.parse(template.fresh(facts(hostile)).body).requestId, hostile);
  });

  it('keeps its header below 4 KiB by leaving a long description out', () => {
    const wordy = challengeFor({ ...report, description: 'ü'.repeat(4_000) }, terms, 'https://shop.example');
    const refused = wordy.refused(facts('req_3'), { ...REFUSAL, reason: 'r'.repeat(64) });
    assert.ok(refused.header.length <= MAX_CHALLENGE_HEADER_BYTES);
    assert.equal(decodePaymentRequiredHeader(refused.header).resource.description, undefined);
  });

  it('is paid by the official client with a proof that we can read', async () => {
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(freshAccount()));
    client.setSpendControls(false);
    const required = decodePaymentRequiredHeader(template.fresh(facts('req_4')).header) as PaymentRequired;
    const payload = await client.createPaymentPayload(required);
    const decoded = decodeProof(encodeProof(JSON.parse(JSON.stringify(payload))));
    assert.ok(decoded.kind === 'decoded');
    assert.equal(decoded.payload.accepted.amount, PRICE_UNITS.toString());
    assert.equal(decoded.buyerToken, TOKEN, 'the client echoes it');
    assert.ok(!JSON.stringify(decoded.payload).includes(TOKEN), 'and the payload does not have it');
  });
});

describe('the PAYMENT-RESPONSE header', () => {
  const settled = {
    success: true,
    transaction: `0x${'ab'.repeat(32)}`,
    network: terms.network,
    status: 'settled',
    provider: 'x402',
    amount: '0.01',
    currency: 'TUSD',
    payer: freshAddress(),
    receiptId: 'receipt_1',
    requestId: 'req_1',
  } as const;

  it('is read by the official client', () => {
    assert.deepEqual(decodePaymentResponseHeader(encodePaymentResponse(settled)), settled);
  });

  it('carries nothing that is not on the list', () => {
    const more = { ...settled, errorMessage: 'internal text', errorReason: undefined };
    assert.deepEqual(decodePaymentResponseHeader(encodePaymentResponse(more as typeof settled)), settled);
  });
});
