import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import errorSchema from '../../schemas/error.schema.json' with { type: 'json' };
import paymentRequiredSchema from '../../schemas/payment-required.schema.json' with { type: 'json' };
import { ERRORS, errorEnvelope, GatewayError } from '../../src/errors.ts';

const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
(formatsPlugin.default ?? formatsPlugin)(ajv);
const obeys = (schema: object, value: unknown): void => {
  const validate = ajv.compile(schema);
  assert.ok(validate(value), JSON.stringify(validate.errors));
};

describe('the published schemas', () => {
  it('accept every error envelope that the gateway can write', () => {
    const errors = [{ path: '$.a', message: 'is required', keyword: 'required' }];
    const details = { errors, reason: 'malformed_json', timeoutMs: 1 };
    for (const code of Object.keys(ERRORS) as (keyof typeof ERRORS)[]) {
      obeys(errorSchema, errorEnvelope(new GatewayError(code, { details }), 'req_1', 'report'));
      obeys(errorSchema, errorEnvelope(new GatewayError(code), 'req_1'));
    }
  });
  it('refuse a code outside the closed list', () => {
    const envelope = errorEnvelope(new GatewayError('NOT_FOUND'), 'r');
    assert.equal(ajv.validate(errorSchema, { ...envelope, code: 'OOPS' }), false);
  });
  it('accept the payment-required envelope of the contract', () => {
    const requirements = {
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '10000',
      asset: '0x1',
      payTo: '0x2',
      maxTimeoutSeconds: 120,
      extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009', paymentFlow: 'upfront' },
    };
    const envelope = {
      x402Version: 2,
      error: 'Payment required',
      resource: { url: 'https://a.example/api/resources/r/invoke' },
      accepts: [requirements],
      extensions: {},
    };
    const payment = {
      provider: 'x402',
      version: '2',
      amount: '0.01',
      currency: 'USDC',
      destination: '0x2',
      network: 'eip155:84532',
      asset: '0x1',
      expiresAt: '2026-01-02T03:04:05.000Z',
      accepts: [requirements],
      envelope,
    };
    const names = { requestId: 'req_1', resourceId: 'r', message: '0.01 USDC for r' };
    const body = { status: 'payment-required', code: 'PAYMENT_REQUIRED', ...names, payment };
    const error = { code: 'PAYMENT_INVALID', reason: 'invalid_payload', message: 'x', retryable: false };
    obeys(paymentRequiredSchema, body);
    obeys(paymentRequiredSchema, { ...body, error });
    assert.equal(ajv.validate(paymentRequiredSchema, { ...body, price: 1 }), false);
  });
});
