/** Judges a run: compares the ledgers of chain, backend, store and buyers. */

import type { Receipt } from '../../src/receipts/receipt.ts';
import type { PowerCut } from './controller.ts';
import { isRepeatable, isSettledAfter, PATHS } from './fleet.ts';
import type { ChainLedger, StoredPayment, StoreLedger } from './ledgers.ts';
import type { Work } from './merchant.ts';
import type { Answered, CallStory, ProofStory, Refusal } from './story.ts';

/** States in which the money has moved. */
const FUNDED = new Set(['settled', 'delivered', 'undelivered', 'refundDue']);
const REDEEMABLE = new Set<string | undefined>(['delivered', 'undelivered', 'refundDue']);

/** Compares the ledgers. */
export function judge(evidence: Evidence): { readonly violations: readonly Violation[]; readonly excused: Excused } {
  const violations: Violation[] = [];
  const losses = lossesOf(evidence);
  const excused: Excused = {
    receiptsLost: 0,
    moneyEventsLost: 0,
    plainPostsRepeated: 0,
    secondAnswers: 0,
    marksLost: 0,
    bound: 0,
  };
  const { calls, chain, open } = evidence;
  const settled = Map.groupBy(
    evidence.store.events.filter(({ type }) => type === 'payment.settled'),
    ({ data }) => String(data?.['transaction'] ?? ''),
  );
  for (const call of calls) {
    const accuse: Accuse = (goal, what) => void violations.push({ goal, call: call.id, what });
    judgeCall(call, evidence, accuse);
    for (const proof of call.proofs) {
      if (losses.mayHaveTaken(proof)) excused.bound += 1;
      judgeAnswers(call, proof, evidence.work, losses, excused, accuse);
      judgeBooks(call, proof, evidence, settled, losses, excused, accuse);
      judgeMark(proof, evidence.store.receipts.get(proof.payId)?.at(0), losses, excused, accuse);
    }
  }
  const paid = calls.flatMap(({ proofs }) => proofs).filter((proof) => isPaid(chain, proof));
  if (paid.reduce((sum, { nonce }) => sum + (chain.spent.get(nonce)?.units ?? 0n), 0n) !== chain.income)
    violations.push({ goal: 'incomeUnexplained', call: 0, what: `${chain.income} units for ${paid.length} payments` });
  for (const nonce of evidence.strays)
    violations.push({
      goal: 'wrongNetwork',
      call: callOfNonce(calls, nonce),
      what: `another facilitator got ${nonce}`,
    });
  for (const record of open) violations.push({ goal: 'openAfterQuiesce', call: callOf(calls, record), what: record });
  return { violations, excused };
}

function judgeCall(call: CallStory, { chain, store }: Evidence, accuse: Accuse): void {
  const paid = call.proofs.filter((proof) => isPaid(chain, proof));
  if (paid.length > 1) accuse('doubleSettled', paid.map(({ nonce }) => nonce).join(' '));
  const taken = call.proofs.filter(({ nonce, answers }) => answers.length > 0 || chain.spent.has(nonce));
  if (call.kind === 'liar' && taken.length > 0) accuse('wrongNetwork', taken.map(({ nonce }) => nonce).join(' '));
  if (call.lines.length === 0) accuse('unfinished', 'never got a challenge');
  for (const line of call.lines) if (line.end === undefined) accuse('unfinished', line.proof.nonce);
  for (const oddity of call.oddities) accuse('unexpectedAnswers', oddity);
  for (const { refusals, payId } of call.proofs)
    for (const one of refusals) {
      if (!isExpected(one, call)) accuse('unexpectedAnswers', describe(one));
      if (one.state === 'delivered' && hasSecret(call, store.payments.get(payId)))
        accuse('keyHolderRefused', describe(one));
    }
}

/**
 * Whether its buyer gets a delivered answer again (contract 4.5). A token suffices where the record
 * keeps its digest; a record made again from the chain may lack it (contract 4.3).
 */
function hasSecret({ key, echoes }: CallStory, record: StoredPayment | undefined): boolean {
  return key !== undefined || (echoes && record?.hasToken === true);
}

function isExpected({ status, code, state }: Refusal, { kind }: CallStory): boolean {
  if (status === 409 && (state === 'used' || code === 'IDEMPOTENCY_CONFLICT')) return kind === 'two_inputs';
  if (status === 409) return state === 'delivered' || state === 'undelivered';
  return status === 502 && code === 'BACKEND_ERROR' && state === 'undelivered';
}

function describe({ status, code, state }: Refusal): string {
  return `${status} ${code} ${state ?? ''}`;
}

/** What buyer and backend saw of one proof. */
function judgeAnswers(
  call: CallStory,
  proof: ProofStory,
  allWork: Evidence['work'],
  losses: Losses,
  excused: Excused,
  accuse: Accuse,
): void {
  const work = allWork.get(proof.merchantKey);
  const sold = worksFor(call, proof, allWork);
  for (const answer of proof.answers)
    if (!isRight(answer, sold))
      accuse('wrongAnswers', `${answer.target.input} got ${JSON.stringify(answer.delivered)}`);
  if (isDeliveryLost(proof, work)) accuse('deliveryLost', proof.nonce);
  const bought = new Set(proof.answers.map(({ target }) => `${target.resource} ${target.input}`));
  // A call that failed before it was paid leaves its proof to another one.
  const asked = isSettledAfter(call.target.resource) ? 0 : (work?.inputs.size ?? 0);
  if (bought.size > 1 || asked > 1) {
    // Only the record holds what a payment bought; without it a second answer is excused.
    if (losses.mayHaveForgotten([...proof.answers.map(({ at }) => at), ...(work?.asked ?? [])]))
      excused.secondAnswers += 1;
    else accuse('secondAnswers', `${proof.nonce} bought ${[...bought, ...(work?.inputs ?? [])].join(', ')}`);
  }
  if (work?.resource !== PATHS.job || work.asked.length < 2) return;
  if (losses.mayHaveForgotten(work.asked)) excused.plainPostsRepeated += 1;
  else accuse('plainPostRepeated', `${call.target.input} ${work.asked.length} times`);
}

/**
 * The work that a proof may buy: its own, and where the money moves after it also that of another
 * proof of the same call, which came to nothing.
 */
function worksFor(call: CallStory, proof: ProofStory, work: Evidence['work']): readonly Work[] {
  const proofs = isSettledAfter(call.target.resource) ? call.proofs : [proof];
  return proofs.flatMap(({ merchantKey }) => work.get(merchantKey) ?? []);
}

function isRight({ target, delivered }: Answered, sold: readonly Work[]): boolean {
  return (
    delivered !== undefined &&
    delivered.input === target.input &&
    delivered.resource === PATHS[target.resource] &&
    sold.some(({ execution }) => execution === delivered.execution)
  );
}

/** Longest time from a buyer's disconnect until its bytes are lost, milliseconds. */
const LEAVING_MS = 100;

/** The state is `delivered`, and every client disconnected before the backend was called. */
function isDeliveryLost({ answers, refusals, lostAt }: ProofStory, work: Work | undefined): boolean {
  if (answers.length > 0 || work === undefined || !refusals.some(({ state }) => state === 'delivered')) return false;
  const askedAt = Math.min(...work.asked);
  return lostAt.every((at) => at < askedAt - LEAVING_MS);
}

function callOf(calls: readonly CallStory[], record: string): number {
  return calls.find(({ proofs }) => proofs.some(({ payId }) => record.startsWith(payId)))?.id ?? 0;
}

function callOfNonce(calls: readonly CallStory[], nonce: string): number {
  return calls.find(({ proofs }) => proofs.some((proof) => proof.nonce === nonce.toLowerCase()))?.id ?? 0;
}

/** Whether the chain shows that this proof paid the merchant. */
export function isPaid(chain: ChainLedger, { nonce }: ProofStory): boolean {
  return chain.spent.get(nonce)?.how === 'paid';
}

/** Compares what chain, backend and store know of one proof. */
function judgeBooks(
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
    const worked = work.has(merchantKey) && !isSettledAfter(call.target.resource);
    if (answers.length > 0 || worked) accuse('deliveredUnpaid', `${nonce} ${chain.spent.get(nonce)?.how}`);
    if (isFunded || receipts.length > 0) accuse('stateUntrue', `${payId} is ${record?.state} and not paid`);
    return;
  }
  if (challenges.length > 0) accuse('challengedAfterSettle', `${nonce}: ${challenges.join(', ')}`);
  if (!isRedeemable(proof, receipts.length)) accuse('settledNotDeliveredNorRedeemable', `${nonce} ${record?.state}`);
  if (worksFor(call, proof, work).length === 0 && call.lines.every(({ target }) => isRepeatable(target.resource)))
    accuse('executionsNotOne', `${nonce} was paid and never done`);
  const delivered = receipts.at(0)?.delivered ?? false;
  if (record !== undefined && (!isFunded || delivered !== (record.state === 'delivered')))
    accuse('stateUntrue', `${payId} is ${record.state}, its receipt has delivered: ${delivered}`);
  const lost = losses.mayHaveTaken(proof);
  if (receipts.length === 0 || record === undefined) {
    if (lost) excused.receiptsLost += 1;
    else accuse('receiptsMissing', `${payId} ${nonce}`);
  }
  const count = settled.get(chain.spent.get(nonce)?.transaction ?? '')?.length ?? 0;
  if (count > 1) accuse('duplicateMoneyEvents', `${nonce} ${count} times`);
  if (count > 0) return;
  if (lost) excused.moneyEventsLost += 1;
  else accuse('moneyEventsMissing', nonce);
}

/** Whether the buyer has the answer, or a receipt and a 409 with the state of the payment. */
function isRedeemable({ answers, refusals }: ProofStory, receipts: number): boolean {
  if (answers.length > 0) return true;
  return (
    receipts > 0 &&
    refusals.some(({ status, state, hasPayment }) => status === 409 && hasPayment && REDEEMABLE.has(state))
  );
}

/**
 * The receipt of a proof that was not delivered has `deliveryUncertain` where bytes may have
 * reached the buyer, and only there: a refund without it would come on top of a delivery.
 */
function judgeMark(
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
  const times = answers.map(({ at }) => timeOf(at));
  if (losses.mayHaveUndone(answers)) excused.marksLost += 1;
  else accuse('deliveredUnmarked', `${payId}: ${nonce} was answered in full at ${times.join(', ')}`);
}

function timeOf(at: number): string {
  return new Date(at).toISOString();
}

/** Each goal is a number of the report that has to be 0. */
export const GOALS = [
  'doubleSettled',
  'settledNotDeliveredNorRedeemable',
  'deliveryLost',
  'deliveredUnpaid',
  'challengedAfterSettle',
  'executionsNotOne',
  'plainPostRepeated',
  'wrongAnswers',
  'secondAnswers',
  'keyHolderRefused',
  'unexpectedAnswers',
  'unfinished',
  'stateUntrue',
  'deliveredUnmarked',
  'markedUnsent',
  'receiptsMissing',
  'moneyEventsMissing',
  'duplicateReceipts',
  'duplicateMoneyEvents',
  'incomeUnexplained',
  'wrongNetwork',
  'openAfterQuiesce',
] as const;
export type Goal = (typeof GOALS)[number];

/** One broken goal, with its call; 0 where it belongs to no call. */
export interface Violation {
  readonly goal: Goal;
  readonly call: number;
  readonly what: string;
}

/** The ledgers of chain, backend and store, and what the buyers saw. */
export interface Evidence {
  readonly calls: readonly CallStory[];
  readonly chain: ChainLedger;
  readonly work: ReadonlyMap<string, Work>;
  readonly store: StoreLedger;
  readonly cuts: readonly PowerCut[];
  /** Nonces of payments that the facilitator of another network got. */
  readonly strays: readonly string[];
  /** Records that were still open when everything was quiet. */
  readonly open: readonly string[];
}

/** What only a power cut may lose: counted, and bounded by the payments in the lost seconds. */
export interface Excused {
  receiptsLost: number;
  moneyEventsLost: number;
  plainPostsRepeated: number;
  secondAnswers: number;
  marksLost: number;
  bound: number;
}

/** Reports a broken goal. */
type Accuse = (goal: Goal, what: string) => void;

/** What the power cuts excuse: writes of the lost seconds, and nothing else. */
interface Losses {
  /**
   * Whether the whole record of a proof may be gone: it may have been made in a lost second, and
   * its buyer's last request came before the restart. A later request makes it again from the
   * chain.
   */
  mayHaveTaken(proof: ProofStory): boolean;
  /**
   * Whether something was done in a lost second and done again, because its record was lost. Unix
   * milliseconds.
   */
  mayHaveForgotten(times: readonly number[]): boolean;
  /**
   * Whether what the store had written before each of these answers left may be gone. It was
   * written after the request came; how late a busy machine reads the answer says nothing.
   */
  mayHaveUndone(answers: ProofStory['answers']): boolean;
}

/** From a write to what it allows, and from an answer to its write, at most, milliseconds. */
const SLACK_MS = 2_000;

function lossesOf({ cuts }: Pick<Evidence, 'cuts'>): Losses {
  return {
    mayHaveTaken({ firstSentAt, lastSentAt, answers, refusals }) {
      if (firstSentAt === undefined || lastSentAt === undefined) return false;
      const lastAt = Math.max(...[...answers, ...refusals].map(({ at }) => at));
      return cuts.some(
        ({ sampledAt, killedAt }) =>
          firstSentAt <= killedAt && lastAt >= sampledAt && lastSentAt <= killedAt + SLACK_MS,
      );
    },
    mayHaveUndone: (answers) =>
      answers.every(({ sentAt, at }) => cuts.some(({ sampledAt, killedAt }) => at >= sampledAt && sentAt <= killedAt)),
    mayHaveForgotten: (times) =>
      cuts.some(
        ({ sampledAt, killedAt }) =>
          times.some((at) => at >= sampledAt && at <= killedAt + SLACK_MS) && times.some((at) => at > killedAt),
      ),
  };
}
