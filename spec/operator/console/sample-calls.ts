import assert from 'node:assert/strict';
import type { EventDraft } from '../../../src/events/event.ts';
import { newCallId } from '../../../src/events/event.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { eventsUntil } from '../../support/records.ts';
import type { Testbed } from '../../support/testbed.ts';

interface MadeCalls {
  /** Request id of the paid call that the backend failed. */
  readonly undelivered: string;
}

/** Makes five purchases, free calls, a challenge, a refusal, and a paid call that fails. */
export async function makeCalls(testbed: Testbed): Promise<MadeCalls> {
  const { gateway } = testbed;
  for (const city of ['Berlin', 'Lisboa', 'Porto']) await buy(testbed, 'market_report', { city });
  for (let bought = 0; bought < 2; bought += 1) await buy(testbed, 'price_list', {});
  await (await gateway.invoke('cities')).arrayBuffer();
  await (await gateway.invoke('free_failing', { status: 500 })).arrayBuffer();
  await testbed.quote('market_report', { city: 'Roma' });
  await (await gateway.invoke('price_list', {}, { 'payment-signature': 'bm90IGEgcHJvb2Y=' })).arrayBuffer();
  const proof = await testbed.proof('failing_post', { status: 500 });
  const failed = await gateway.invoke('failing_post', { status: 500 }, { 'payment-signature': proof });
  assert.equal(failed.status, 502);
  await failed.arrayBuffer();
  const undelivered = failed.headers.get('x-request-id') ?? '';
  await eventsUntil(gateway, undelivered, 'backend.failed');
  return { undelivered };
}

/** Buys one resource; resolves to the request id once the delivery is in the events. */
export async function buy(testbed: Testbed, resourceId: string, input: unknown): Promise<string> {
  const proof = await testbed.proof(resourceId, input);
  const answer = await testbed.gateway.invoke(resourceId, input, { 'payment-signature': proof });
  assert.equal(answer.status, 200);
  await answer.arrayBuffer();
  const requestId = answer.headers.get('x-request-id') ?? '';
  await eventsUntil(testbed.gateway, requestId, 'resource.delivered');
  return requestId;
}

/** A receipt of a payment of yesterday. */
export function oldReceipt(number: number, change: Partial<Receipt> = {}, settledAgoMs = 26 * 3_600_000): Receipt {
  const settledAt = new Date(Date.now() - settledAgoMs);
  const time = settledAt.getTime().toString(16).padStart(12, '0');
  const tail = number.toString(16).padStart(12, '0');
  return {
    id: `receipt_${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${tail}`,
    requestId: `req-old-${number}`,
    resourceId: 'archive',
    protocol: 'mcp',
    at: new Date(settledAt.getTime() + 1_000).toISOString(),
    delivered: false,
    backendStatus: 500,
    durationMs: 812,
    payment: {
      status: 'settled',
      provider: 'x402',
      amount: '0.02',
      currency: 'TUSD',
      network: 'eip155:31337',
      asset: `0x${'a5'.repeat(20)}`,
      payer: `0x${'b6'.repeat(20)}`,
      payee: `0x${'c7'.repeat(20)}`,
      externalReference: `0x${'d8'.repeat(32)}`,
      // A payment has one receipt.
      replayKey: `${time}${tail}`.padStart(64, 'e9'),
      settledAt: settledAt.toISOString(),
    },
    ...change,
  };
}

/** An invented event. */
export function event(type: EventDraft['type'], facts: Partial<EventDraft> = {}): EventDraft {
  const bare = { type, requestId: 'req-made', callId: newCallId(), resourceId: 'cities', adapter: 'http' } as const;
  return { ...bare, at: new Date().toISOString(), ...facts };
}
