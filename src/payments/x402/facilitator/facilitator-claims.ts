import type { Settled, Settlement } from '../../rail.ts';
import { refusedBeforeBroadcast, SETTLEMENT_PENDING, saysNonceSpent } from '../wire/reasons.ts';
import type { SettleAnswer } from './facilitator-wire.ts';

/** What a facilitator's words about a settlement are worth. */

/**
 * Without a chain to ask: a claim counts, "nonce already used" counts for what may have been sent before, and a definite refusal counts
 * when nothing was. Everything else is open.
 * @param transaction The last hash that any facilitator named.
 */
export function takenAtItsWord(answer: SettleAnswer, sentBefore: boolean, transaction: string | undefined): Settlement {
  if (answer.kind === 'claimed') return { kind: 'settled', evidence: 'claim', transaction: answer.transaction };
  if (answer.kind === 'denied') {
    const { reason, namedTransaction } = answer;
    // Payee and value are inside the signature: who used this nonce on chain paid us (x402 4.2).
    if (sentBefore && saysNonceSpent(reason)) return settledByNonce(transaction);
    if (!sentBefore && !namedTransaction && refusedBeforeBroadcast(reason))
      return { kind: 'refused', reason, evidence: 'unsent' };
  }
  const { cause } = unproven(answer);
  return { kind: 'uncertain', cause, ...(transaction === undefined ? {} : { transaction }) };
}

/** Paid, on the word that the nonce of something we sent is used. */
export function settledByNonce(transaction: string | undefined): Settled {
  return { kind: 'settled', evidence: 'nonce', ...(transaction === undefined ? {} : { transaction }) };
}

/** What to say if the chain does not decide, and whether it may decide soon. */
export function unproven(answer: SettleAnswer): { readonly cause: string; readonly maySettleSoon: boolean } {
  const named = answer.transaction !== undefined;
  switch (answer.kind) {
    case 'claimed':
      return { cause: 'claimed by the facilitator, not shown by the chain', maySettleSoon: true };
    case 'denied': {
      const { reason } = answer;
      const underWay = reason === SETTLEMENT_PENDING || saysNonceSpent(reason);
      return { cause: `the facilitator said ${reason}`, maySettleSoon: named || underWay };
    }
    case 'none':
      return { cause: answer.cause, maySettleSoon: named };
  }
}
