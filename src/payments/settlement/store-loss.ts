/** Payments that the chain shows and no record has: whose they are, and the mark that shows it. */

import type { PaymentFacts, PaymentRecord, PaymentTerms } from '../ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../ledger/transitions.ts';
import type { Settled, SettlementHistory } from '../rail.ts';
import type { PaymentRail } from '../x402/wire/types.ts';
import type { SettlementRequest } from './settlement-request.ts';
import { readForChain } from './stored-purchase.ts';

/** Parts that decide whose payment the chain shows (contract 4.3). */
export interface PayeeParts {
  readonly rail: PaymentRail;
  /**
   * Nothing else is paid to this payee. Otherwise another store or seller may be, and a payment
   * counts only where this store caused its transaction; one that no record has, only where our own
   * transaction carries the token of this very call in its calldata.
   */
  readonly payToExclusive: boolean;
  /** Whether a payment that no record has is delivered. */
  readonly onStoreLoss: 'deliver' | 'refuse';
  /** Gets each payment that is not known to be of the buyer who brought the proof. */
  readonly onUnclaimed?: (facts: { readonly payId: string; readonly transaction: string | undefined }) => void;
}

/** Whether this call's buyer made such a payment; `unknown`: the node did not answer. */
type StoreLossClaim =
  | { readonly kind: 'theirs'; readonly facts: Pick<PaymentFacts, 'recovered' | 'tokenDigest'> }
  | { readonly kind: 'unclaimed' }
  | { readonly kind: 'unknown'; readonly cause: string };

/**
 * Whose a lost payment is; one that was sent back is no buyer's any more. A token proves a 402 of
 * this gateway and not the buyer, because every caller may fetch one beforehand; only its digest in
 * a transaction of our own shows with which token a payment was made. `terms`: of the call that
 * brings the proof.
 */
export async function claimOfLost(
  { rail, payToExclusive, onStoreLoss, onUnclaimed }: PayeeParts,
  record: PaymentRecord,
  { transaction }: Settled,
  { tokenDigest }: Pick<PaymentTerms, 'tokenDigest'>,
): Promise<StoreLossClaim> {
  const { payId, keyDigest, reservedAt, validBefore } = record;
  const withinWindow = reservedAt <= validBefore * 1_000 + RETRY_WINDOW_MS;
  const { proof, requirements } = readForChain(record);
  let mark: string | undefined;
  let isTheirs: boolean;
  try {
    mark = await rail.markOf?.(transaction, proof);
    isTheirs = mark === undefined ? payToExclusive : mark === tokenDigest;
    isTheirs &&= onStoreLoss !== 'refuse' && withinWindow;
    // Asked last: it is a question to the chain of its own.
    isTheirs &&= (await rail.sentBack?.(proof, requirements)) !== true;
  } catch (cause) {
    return { kind: 'unknown', cause: String(cause) };
  }
  if (!isTheirs) {
    onUnclaimed?.({ payId, transaction });
    return { kind: 'unclaimed' };
  }
  // A token that is too old for a new purchase is the secret of this one all the same.
  const secret = mark === undefined || keyDigest !== undefined ? {} : { tokenDigest: mark };
  return { kind: 'theirs', facts: { recovered: 'chain', ...secret } };
}

/**
 * What a rail puts on the chain for a record: the digest of a random token. A key could be guessed
 * from its digest.
 */
export function markFor(
  { keyDigest, tokenDigest }: PaymentRecord,
  { terms, token }: Pick<SettlementRequest, 'terms' | 'token'>,
): Pick<SettlementHistory, 'mark'> {
  const mark = tokenDigest ?? (keyDigest !== undefined && token?.kind === 'issued' ? terms.tokenDigest : undefined);
  return mark === undefined ? {} : { mark };
}
