/** Gets the whole answer of the backend for a payment, to keep it until its buyer has it. */

import {
  type BackendAnswer,
  BackendError,
  type BackendRequest,
  classify,
  type Exchange,
} from '../../backend/exchange.ts';
import { relayedHeaders } from '../../backend/header-policy.ts';
import { type KeptAnswer, MAX_KEPT_BYTES } from '../ledger/ledger.ts';

export type Fetched =
  | { readonly kind: 'answer'; readonly answer: KeptAnswer }
  /** `status` 0: no answer came. `reason`: of contract 1.2, empty when the status is enough. */
  | {
      readonly kind: 'failed';
      readonly status: number;
      readonly reason: string;
      readonly requestWritten: boolean;
      readonly cause?: BackendError;
    };

/** Sends a request once. An answer that is too large to be kept is a failure. */
export async function fetchAnswer(
  exchange: Exchange,
  request: BackendRequest,
  { timeoutMs, maxResponseBytes }: { readonly timeoutMs: number; readonly maxResponseBytes: number },
): Promise<Fetched> {
  try {
    const limits = { timeoutMs, maxResponseBytes: Math.min(maxResponseBytes, MAX_KEPT_BYTES) };
    const answer = await exchange(request, limits);
    const outcome = classify(answer.status, []);
    if (outcome.kind === 'deliver') return { kind: 'answer', answer: await wholeAnswer(answer) };
    answer.body.destroy();
    const reason = outcome.kind === 'redirect' ? 'redirect_not_followed' : '';
    return { kind: 'failed', status: answer.status, reason, requestWritten: true };
  } catch (thrown) {
    if (!(thrown instanceof BackendError)) throw thrown;
    const reason = thrown.reason === 'unreachable' ? 'transport' : thrown.reason;
    return { kind: 'failed', status: 0, reason, requestWritten: thrown.requestWritten, cause: thrown };
  }
}

async function wholeAnswer({ status, headers, body, whole }: BackendAnswer): Promise<KeptAnswer> {
  const relayed = relayedHeaders(headers, { free: false, status });
  if (whole !== undefined) return { status, headers: relayed, body: whole };
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk as Uint8Array);
  return { status, headers: relayed, body: Buffer.concat(chunks) };
}
