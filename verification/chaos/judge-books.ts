/** Judges what the store says of a payment against chain and backend. */

import type { ChainLedger } from './chain-ledger.ts';
import { isRepeatable } from './fleet.ts';
import type { Accuse, Evidence, Excused } from './goals.ts';
import type { Losses } from './losses.ts';
import type { CallStory, ProofStory } from './story.ts';

/** Whether the chain shows that this proof paid us. */
export function isPaid(chain: ChainLedger, { nonce }: ProofStory): boolean {
  return chain.spent.get(nonce)?.how === 'paid';
}

/** What chain, merchant and store say of one proof. */
export function judgeBooks(
  call: CallStory,
  proof: ProofStory,
  { chain, work, store }: Evidence,
  settled: ReadonlyMap<string, readonly unknown[]>,
  losses: Losses,
  excused: Excused,
  accuse: Accuse,
): void {
  const { nonce, payId, merchantKey, answers, challenges } = proof;
  const record = store.payments.get(payId);
  const receipts = store.receipts.get(payId) ?? [];
  if (receipts.length > 1) accuse('duplicateReceipts', payId);
  const isFunded = record !== undefined && FUNDED.has(record.state);
  if (!isPaid(chain, proof)) {
    if (answers.length > 0 || work.has(merchantKey))
      accuse('deliveredUnpaid', `${nonce} ${chain.spent.get(nonce)?.how}`);
    if (isFunded || receipts.length > 0) accuse('stateUntrue', `${payId} is ${record?.state} and not paid`);
    return;
  }
  if (challenges.length > 0) accuse('challengedAfterSettle', `${nonce}: ${challenges.join(', ')}`);
  if (!isRedeemable(proof, receipts.length)) accuse('settledNotDeliveredNorRedeemable', `${nonce} ${record?.state}`);
  if (!work.has(merchantKey) && call.lines.every(({ target }) => isRepeatable(target.resource)))
    accuse('executionsNotOne', `${nonce} was paid and never done`);
  const delivered = receipts.at(0)?.delivered ?? false;
  if (record !== undefined && (!isFunded || delivered !== (record.state === 'delivered')))
    accuse('stateUntrue', `${payId} is ${record.state}, its receipt says delivered ${delivered}`);
  const lost = losses.mayHaveTaken(proof);
  if (receipts.length === 0 || record === undefined) {
    if (lost) excused.receiptsLost += 1;
    else accuse('receiptsMissing', `${payId} ${nonce}`);
  }
  const told = settled.get(chain.spent.get(nonce)?.transaction ?? '')?.length ?? 0;
  if (told > 1) accuse('duplicateMoneyEvents', `${nonce} ${told} times`);
  if (told > 0) return;
  if (lost) excused.moneyEventsLost += 1;
  else accuse('moneyEventsMissing', nonce);
}

/** States that say that the money moved. */
const FUNDED = new Set(['settled', 'delivered', 'undelivered', 'refundDue']);
const REDEEMABLE = new Set<string | undefined>(['delivered', 'undelivered', 'refundDue']);

/** The answer, or the gateway's word that the payment was taken and its receipt. */
function isRedeemable({ answers, told }: ProofStory, receipts: number): boolean {
  if (answers.length > 0) return true;
  return (
    receipts > 0 && told.some(({ status, state, hasPayment }) => status === 409 && hasPayment && REDEEMABLE.has(state))
  );
}
