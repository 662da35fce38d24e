/** Reads events and receipts of a call as soon as they are written. */

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { CommerceEvent } from '../../src/events/event.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { TestGateway } from './gateway.ts';

/** Longest wait for what a caller has already seen: events of free calls are written in batches. */
const BOOKS_DEADLINE_MS = 5_000;
const LOOK_EVERY_MS = 15;

/** The events of one request, oldest first, as soon as the last of them is of `lastType`. */
export async function eventsUntil(
  gateway: Pick<TestGateway, 'operator'>,
  requestId: string,
  lastType: string,
): Promise<readonly CommerceEvent[]> {
  return eventually(async () => {
    const answer = await gateway.operator(`/api/events?limit=500&requestId=${requestId}`);
    assert.equal(answer.status, 200);
    const { events } = (await answer.json()) as { events: CommerceEvent[] };
    return events[0]?.type === lastType ? events.toReversed() : undefined;
  }, `an event ${lastType} of ${requestId}`);
}

/** The receipt of one request, as soon as its `delivered` is this. */
export async function receiptWhen(
  gateway: Pick<TestGateway, 'operator'>,
  requestId: string,
  delivered: boolean,
): Promise<Receipt> {
  return eventually(async () => {
    const answer = await gateway.operator(`/api/receipts?requestId=${requestId}`);
    assert.equal(answer.status, 200);
    const { receipts } = (await answer.json()) as { receipts: Receipt[] };
    assert.ok(receipts.length <= 1, 'one receipt a request');
    return receipts.find((receipt) => receipt.delivered === delivered);
  }, `a receipt of ${requestId} with delivered ${delivered}`);
}

/** The metadata of a receipt but for the call id. */
export function metadataOf({ metadata }: Receipt): object {
  const { callId: _own, ...rest } = metadata ?? {};
  return rest;
}

/** Repeats `look` until it finds something. @throws Error when time is up */
export async function eventually<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
  const deadline = Date.now() + BOOKS_DEADLINE_MS;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (Date.now() > deadline) throw new Error(`waited ${BOOKS_DEADLINE_MS} ms for ${what}`);
    await delay(LOOK_EVERY_MS);
  }
}
