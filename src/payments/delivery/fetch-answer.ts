/** Gets the whole answer of the backend for a payment, to keep it until its buyer has it. */

import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  classify,
  type Exchange,
  type RelayStatuses,
  type Sale,
} from '../../backend/exchange.ts';
import { relayedHeaders } from '../../backend/header-policy.ts';
import { type KeptAnswer, MAX_KEPT_BYTES } from '../ledger/ledger.ts';
import type { Worked } from '../settlement/settlement-request.ts';

/**
 * Sends a request once. An answer that is too large to be kept is a failure. `sale`: the payment
 * whose money has moved for it.
 */
export async function fetchAnswer(
  exchange: Exchange,
  request: BackendRequest,
  {
    timeoutMs,
    maxResponseBytes,
    relayStatuses,
  }: { readonly timeoutMs: number; readonly maxResponseBytes: number; readonly relayStatuses: RelayStatuses },
  sale?: Sale,
): Promise<Worked> {
  try {
    const most = Math.min(maxResponseBytes, MAX_KEPT_BYTES);
    const limits = { timeoutMs, maxResponseBytes: most, ...(sale === undefined ? {} : { sale }) };
    const answer = await exchange(request, limits);
    const { status } = answer;
    const outcome = classify(status, relayStatuses.sold);
    if (outcome.kind === 'deliver') return { kind: 'answer', answer: await wholeAnswer(answer) };
    if (relayStatuses.unpaid.includes(status))
      return { kind: 'failed', failure: { status, requestWritten: true, relayed: await wholeAnswer(answer) } };
    answer.body.destroy();
    const reason = outcome.kind === 'redirect' ? { reason: 'redirect_not_followed' } : {};
    return { kind: 'failed', failure: { status, ...reason, requestWritten: true } };
  } catch (thrown) {
    if (!(thrown instanceof BackendError)) throw thrown;
    const { requestWritten, reason } = thrown;
    return { kind: 'failed', failure: { status: 0, reason, requestWritten, cause: thrown } };
  }
}

async function wholeAnswer(answer: BackendAnswer): Promise<KeptAnswer> {
  // Asked for first: of an answer whose body was asked for nothing is there as a whole.
  const { status, headers, whole } = answer;
  const relayed = relayedHeaders(headers, { free: false, status });
  if (whole !== undefined) return { status, headers: relayed, body: whole };
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(chunk as Uint8Array);
  return { status, headers: relayed, body: Buffer.concat(chunks) };
}
