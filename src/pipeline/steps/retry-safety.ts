import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../../payments/ledger/retention.ts';
import type { Resource } from '../../resources/resource.ts';

/** Whether the merchant may be sent this resource's request a second time (contract 4.3, row "undelivered"). */
export function isRetrySafe(resource: {
  readonly backend: Pick<Resource['backend'], 'method' | 'idempotent'>;
}): boolean {
  const { method, idempotent } = resource.backend;
  return idempotent || method === 'GET' || method === 'PUT' || method === 'DELETE';
}

/** Until when the same proof can collect what it paid for, ISO 8601. */
export function retryUntil(record: PaymentRecord): string {
  return new Date((record.settledAt ?? record.changedAt) + RETRY_WINDOW_MS).toISOString();
}
