/**
 * Compares the last receipt of a proof that was not delivered with what its buyer saw:
 * `deliveryUncertain` stands where bytes may have reached the buyer, and only there. A refund
 * without it would be paid beside the goods.
 */

import type { Receipt } from '../../src/receipts/receipt.ts';
import type { Accuse, Excused } from './goals.ts';
import type { Losses } from './losses.ts';
import type { ProofStory } from './story.ts';

export function judgeMark(
  { nonce, payId, answers, lostAt }: ProofStory,
  receipt: Pick<Receipt, 'delivered' | 'metadata'> | undefined,
  losses: Losses,
  excused: Excused,
  accuse: Accuse,
): void {
  if (receipt === undefined || receipt.delivered) return;
  const isMarked = receipt.metadata?.deliveryUncertain === true;
  if (isMarked && answers.length === 0 && lostAt.length === 0)
    accuse('markedUnsent', `${payId}: every request with ${nonce} was refused in full`);
  if (isMarked || answers.length === 0) return;
  const times = answers.map(({ at }) => at);
  if (losses.mayHaveUndone(times)) excused.marksLost += 1;
  else accuse('deliveredUnmarked', `${payId}: ${nonce} was answered in full at ${times.map(timeOf).join(', ')}`);
}

function timeOf(at: number): string {
  return new Date(at).toISOString();
}
