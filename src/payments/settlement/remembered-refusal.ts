import type { PaymentRecord } from '../ledger/ledger.ts';
import type { Refusal } from '../ledger/refusals.ts';
import { VALID_BEFORE_EXCESS_SECONDS } from '../x402/wire/window.ts';
import type { SettlementRequest } from './settlement-request.ts';
import { readStoredProof } from './stored-proof.ts';

/** What the provider said of the proof of an order, for the copies of it that are still to come: they must not hear anything else. */
export function rememberedRefusal(
  { proof }: Pick<SettlementRequest, 'proof'>,
  record: PaymentRecord,
  reason: string,
): Refusal | undefined {
  if (proof === undefined) return undefined;
  // No proof is taken that lives for longer (window check).
  const atMostMs = (readStoredProof(record).requirements.maxTimeoutSeconds + VALID_BEFORE_EXCESS_SECONDS) * 1_000;
  return { proof, reason, until: record.validBefore * 1_000, atMostMs };
}
