import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import type { Advanced, PaymentRecord, Reservation } from '../../src/payments/ledger/ledger.ts';
import type { ReceiptPage } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import type { StoreLimits } from '../../src/store/port/settings.ts';
import { recordIn, terms } from '../payments/ledger/samples.ts';

/** Small enough to be filled by a test. */
export const LIMITS: StoreLimits = { eventsMaxLength: 300, receiptsMaxLength: 20 };
/** A lease longer than any test, milliseconds. */
export const LEASE_MS = 60_000;

/** Opens a store; stores opened by different merchants, or files, know nothing of each other. */
export type OpenStore = (merchantId?: string) => Promise<Store>;

/** A store for the tests of one group, and a fresh reservation in it. */
export function opened(open: OpenStore) {
  let opening: Store | undefined;
  before(async () => {
    opening = await open(randomUUID());
  });
  after(() => opening?.close());
  const store = (): Store => opening ?? assert.fail('not open');
  const reserved = async (): Promise<PaymentRecord> => {
    return granted(await store().ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
  };
  return { store, reserved };
}

/** The store's own clock, read from what it stamps on a record, milliseconds. */
export async function clockOf({ ledger }: Store): Promise<number> {
  const record = recordIn(await ledger.reserve({ terms: terms(), owner: 'clock', leaseMs: LEASE_MS }));
  return record.reservedAt;
}

/** Resolves when the store's own clock is past `time`, milliseconds. */
export async function clockPast(store: () => Store, time: number): Promise<void> {
  while ((await clockOf(store())) <= time);
}

/** The record of a reservation that was granted. */
export function granted(answer: Reservation): PaymentRecord {
  return answer.kind === 'granted' ? answer.record : assert.fail(answer.kind);
}

/** The record after a write that was done. */
export function done(answer: Advanced): PaymentRecord {
  return answer.kind === 'done' ? answer.record : assert.fail(answer.kind);
}

/** The ids of a page of receipts. */
export function idsIn({ receipts }: ReceiptPage): readonly string[] {
  return receipts.map(({ id }) => id);
}

/** A directory that is deleted after the tests of the file. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'acg-store-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
