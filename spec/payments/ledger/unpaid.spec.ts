import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unpaidWork } from '../../../src/payments/ledger/unpaid.ts';
import { inState } from './samples.ts';

describe('work that was not paid for', () => {
  it('is shown with its call, its price and why it came to nothing, and without what its buyer sent', () => {
    const record = inState('refused', { answered: 201, callId: 'call_1' });
    assert.deepEqual(unpaidWork(record), {
      at: new Date(record.changedAt).toISOString(),
      requestId: record.requestId,
      callId: 'call_1',
      resourceId: 'market_report',
      channel: 'http',
      amount: '0.01',
      currency: 'USDC',
      network: 'eip155:84532',
      payer: record.payer,
      replayKey: record.payId,
      backendStatus: 201,
      reason: 'insufficient_funds',
    });
  });
});
