import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventDraft } from '../../../src/events/event.ts';
import { undeliveredCause } from '../../../src/telemetry/metrics/payment-metrics.ts';
import { event, receipt } from '../../payments/ledger/samples.ts';

const failed = (reason?: string): EventDraft => ({
  ...event('backend.failed', 'req-1'),
  data: { code: 'BACKEND_ERROR', ...(reason === undefined ? {} : { reason }) },
});

describe('who kept a buyer from what he paid for', () => {
  for (const { what, code, events = [], cause } of [
    { what: 'a merchant that answered 500', code: 'BACKEND_ERROR', events: [failed()], cause: 'merchant' },
    { what: 'a merchant that was too slow', code: 'BACKEND_ERROR', events: [failed('timeout')], cause: 'merchant' },
    { what: 'the end of this process', code: 'BACKEND_ERROR', events: [failed('aborted')], cause: 'gateway' },
    { what: 'an earlier attempt that died', code: 'BACKEND_ERROR', cause: 'gateway' },
    { what: 'no memory for the answer', code: 'GATEWAY_BUSY', cause: 'gateway' },
    { what: 'a bug', code: 'INTERNAL_ERROR', cause: 'gateway' },
    { what: 'a buyer who hung up', code: 'CLIENT_GONE', cause: 'client_gone' },
    { what: 'a buyer who was not there when the answer was fetched', code: undefined, cause: 'client_gone' },
  ])
    it(`${what}: ${cause}`, () => {
      const metadata = code === undefined ? { answerKept: true as const } : { backendErrorCode: code };
      const told = receipt('receipt_00000000-0000-7000-8000-000000000001', 'req-1', { delivered: false, metadata });
      assert.equal(undeliveredCause({ receipt: told, events }), cause);
    });
});
