/** Judges a run: compares the ledgers of chain, backend, store and buyers. */

import { PRICE_UNITS } from './fleet.ts';
import type { Accuse, Evidence, Excused, Violation } from './goals.ts';
import { isPaid, judgeBooks } from './judge-books.ts';
import { judgeMark } from './judge-mark.ts';
import { type Losses, lossesOf } from './losses.ts';
import type { Work } from './merchant.ts';
import type { StoredPayment } from './store-ledger.ts';
import type { Answered, CallStory, ProofStory, Told } from './story.ts';

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
      judgeAnswers(call, proof, evidence.work.get(proof.merchantKey), losses, excused, accuse);
      judgeBooks(call, proof, evidence, settled, losses, excused, accuse);
      judgeMark(proof, evidence.store.receipts.get(proof.payId)?.at(0), losses, excused, accuse);
    }
  }
  const paid = calls.flatMap(({ proofs }) => proofs).filter((proof) => isPaid(chain, proof)).length;
  if (BigInt(paid) * PRICE_UNITS !== chain.income)
    violations.push({ goal: 'incomeUnexplained', call: 0, what: `${chain.income} units for ${paid} payments` });
  for (const record of open) violations.push({ goal: 'openAfterQuiesce', call: callOf(calls, record), what: record });
  return { violations, excused };
}

function judgeCall(call: CallStory, { chain, store }: Evidence, accuse: Accuse): void {
  const paid = call.proofs.filter((proof) => isPaid(chain, proof));
  if (paid.length > 1) accuse('doubleSettled', paid.map(({ nonce }) => nonce).join(' '));
  if (call.lines.length === 0) accuse('unfinished', 'never got a challenge');
  for (const line of call.lines) if (line.end === undefined) accuse('unfinished', line.proof.nonce);
  for (const oddity of call.oddities) accuse('unexpectedAnswers', oddity);
  for (const { told, payId } of call.proofs)
    for (const one of told) {
      if (!isExpected(one, call)) accuse('unexpectedAnswers', describe(one));
      if (one.state === 'delivered' && hasSecret(call, store.payments.get(payId)))
        accuse('keyHolderRefused', describe(one));
    }
}

/**
 * Whether its buyer is given a delivered answer again (contract 4.5). A token opens it where the
 * record keeps its digest, which one that was made again from the chain may not (contract 4.3).
 */
function hasSecret({ key, echoes }: CallStory, record: StoredPayment | undefined): boolean {
  return key !== undefined || (echoes && record?.hasToken === true);
}

function isExpected({ status, code, state }: Told, { kind }: CallStory): boolean {
  if (status === 409 && (state === 'used' || code === 'IDEMPOTENCY_CONFLICT')) return kind === 'two_inputs';
  if (status === 409) return state === 'delivered' || state === 'undelivered';
  return status === 502 && code === 'BACKEND_ERROR' && state === 'undelivered';
}

function describe({ status, code, state }: Told): string {
  return `${status} ${code} ${state ?? ''}`;
}

/** What buyer and merchant saw of one proof. */
function judgeAnswers(
  call: CallStory,
  proof: ProofStory,
  work: Work | undefined,
  losses: Losses,
  excused: Excused,
  accuse: Accuse,
): void {
  for (const answer of proof.answers)
    if (!isRight(answer, work))
      accuse('wrongAnswers', `${answer.target.input} got ${JSON.stringify(answer.delivered)}`);
  if (isDeliveredToNobody(proof, work)) accuse('deliveredToNobody', proof.nonce);
  const bought = new Set(proof.answers.map(({ target }) => `${target.resource} ${target.input}`));
  if (bought.size > 1 || (work !== undefined && work.inputs.size > 1)) {
    // Without its record nothing tells what a payment had bought, so a second answer is excused.
    if (losses.mayHaveForgotten([...proof.answers.map(({ at }) => at), ...(work?.asked ?? [])]))
      excused.secondAnswers += 1;
    else accuse('secondAnswers', `${proof.nonce} bought ${[...bought, ...(work?.inputs ?? [])].join(', ')}`);
  }
  if (work?.resource !== PATHS.job || work.asked.length < 2) return;
  if (losses.mayHaveForgotten(work.asked)) excused.plainPostsRepeated += 1;
  else accuse('plainPostRepeated', `${call.target.input} ${work.asked.length} times`);
}

const PATHS = { report: 'reports', order: 'orders', job: 'jobs' } as const;

function isRight({ target, delivered }: Answered, work: Work | undefined): boolean {
  return (
    delivered !== undefined &&
    delivered.input === target.input &&
    delivered.resource === PATHS[target.resource] &&
    delivered.execution === work?.execution
  );
}

/** From the moment a buyer breaks off until his bytes are gone, at most, milliseconds. */
const LEAVING_MS = 100;

/** The gateway says delivered, and whoever had asked was gone before the merchant was. */
function isDeliveredToNobody({ answers, told, lostAt }: ProofStory, work: Work | undefined): boolean {
  if (answers.length > 0 || work === undefined || !told.some(({ state }) => state === 'delivered')) return false;
  const askedAt = Math.min(...work.asked);
  return lostAt.every((at) => at < askedAt - LEAVING_MS);
}

function callOf(calls: readonly CallStory[], record: string): number {
  return calls.find(({ proofs }) => proofs.some(({ payId }) => record.startsWith(payId)))?.id ?? 0;
}
