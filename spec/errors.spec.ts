import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asGatewayError, ERRORS, errorEnvelope, GatewayError } from '../src/errors.ts';

/** The table of contract 1.2, as it is written there. */
const STATUS: Readonly<Record<string, number>> = {
  INPUT_INVALID: 400,
  UNAUTHORIZED: 401,
  PAYMENT_REQUIRED: 402,
  PAYMENT_INVALID: 402,
  FORBIDDEN: 403,
  AUTHORIZATION_REQUIRED: 403,
  AUTHORIZATION_INVALID: 403,
  PAYER_BLOCKED: 403,
  RESOURCE_NOT_FOUND: 404,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  PAYMENT_REPLAYED: 409,
  AUTHORIZATION_REPLAYED: 409,
  IDEMPOTENCY_CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RATE_LIMITED: 429,
  CONFIG_INVALID: 500,
  INTERNAL_ERROR: 500,
  PROTOCOL_UNSUPPORTED: 501,
  BACKEND_ERROR: 502,
  PAYMENT_SETTLEMENT_FAILED: 502,
  PAYMENT_PROVIDER_UNAVAILABLE: 503,
  AUTHORIZATION_PROVIDER_UNAVAILABLE: 503,
  GATEWAY_BUSY: 503,
  STORAGE_ERROR: 503,
  BACKEND_TIMEOUT: 504,
};

describe('the closed list of failures', () => {
  it('has the codes of the contract with their statuses, and no other', () => {
    assert.deepEqual(Object.fromEntries(Object.entries(ERRORS).map(([code, { status }]) => [code, status])), STATUS);
  });

  it('says with each 503, and with no other, when to try again, where the thrower does not', () => {
    for (const code of Object.keys(ERRORS) as (keyof typeof ERRORS)[]) {
      const { status, headers } = new GatewayError(code);
      assert.deepEqual(headers, status === 503 ? { 'retry-after': '1' } : {});
    }
    assert.equal(new GatewayError('GATEWAY_BUSY', { headers: { 'retry-after': '5' } }).headers['retry-after'], '5');
  });

  it('anything else that is thrown is INTERNAL_ERROR, without its text', () => {
    const bug = asGatewayError(new Error('password is hunter2'));
    assert.deepEqual(errorEnvelope(bug, 'req_1'), {
      status: 'error',
      code: 'INTERNAL_ERROR',
      message: 'The gateway failed on its own account.',
      retryable: false,
      requestId: 'req_1',
    });
    assert.equal((bug.cause as Error).message, 'password is hunter2', 'the log still learns it');
  });

  it('a message never grows beyond 300 characters, and details are there only when there are any', () => {
    const long = new GatewayError('INPUT_INVALID', { message: 'x'.repeat(400), details: { field: 'limit' } });
    const envelope = errorEnvelope(long, 'req_1', 'market_report');
    assert.deepEqual(
      [envelope.message.length, envelope.resourceId, envelope.details],
      [300, 'market_report', { field: 'limit' }],
    );
  });
});
