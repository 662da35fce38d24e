/** Calls a resource as a skill over A2A 1.0. */

import { randomUUID } from 'node:crypto';
import {
  base64JsonOf,
  type Channel,
  challengeOf,
  jsonOf,
  members,
  type Reply,
  settlementOf,
  waitOf,
  whyOf,
} from './channel.ts';
import type { JsonRpcCall } from './json-rpc-call.ts';

const ANSWER_TIMEOUT_MS = 120_000;
/** Metadata of the x402 extension of A2A. */
const PAYMENT_PAYLOAD = 'x402.payment.payload';
const PAYMENT_REQUIRED = 'x402.payment.required';
const PAYMENT_RESPONSE = 'x402/payment-response';

export function a2aChannel({ url, resource, input, headers }: JsonRpcCall): Channel {
  return {
    async send(payment) {
      const parts = [{ data: { resource, input }, mediaType: 'application/json' }];
      const metadata = payment && {
        metadata: { [PAYMENT_PAYLOAD]: base64JsonOf(payment.proof) },
      };
      const message = { messageId: randomUUID(), role: 'ROLE_USER', parts, ...metadata };
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      });
      return replyOf(await response.text(), response.headers.get('retry-after') ?? undefined);
    },
  };
}

interface Task {
  readonly status?: { readonly state?: string; readonly message?: { readonly metadata?: unknown } };
  readonly artifacts?: readonly {
    readonly parts?: readonly { readonly data?: unknown }[];
    readonly metadata?: unknown;
  }[];
}

function replyOf(text: string, retryAfter: string | undefined): Reply {
  const answer = members(jsonOf(text));
  const task = members(answer['result'])['task'] as Task | undefined;
  // A refusal of the message itself: an error of JSON-RPC, or the envelope of a plain HTTP answer.
  if (task === undefined) {
    const body = Buffer.from(text);
    const status = String(answer['code'] ?? members(answer['error'])['code'] ?? 'no task');
    const againInMs = waitOf(answer, retryAfter);
    const nothing = { contentType: undefined, challenge: undefined, settlement: undefined };
    return { ok: false, status, why: whyOf(answer), body, ...nothing, againInMs };
  }
  const [artifact] = task.artifacts ?? [];
  const data = artifact?.parts?.[0]?.data;
  const ok = task.status?.state === 'TASK_STATE_COMPLETED';
  return {
    ok,
    status: task.status?.state ?? 'no state',
    why: whyOf(data),
    ...contentOf(data, ok),
    challenge: challengeOf(members(task.status?.message?.metadata)[PAYMENT_REQUIRED], data),
    settlement: settlementOf(members(artifact?.metadata)[PAYMENT_RESPONSE]),
    againInMs: waitOf(data, retryAfter),
  };
}

/** What is no JSON object stands as `value` in one; bytes as base64. */
function contentOf(data: unknown, ok: boolean): Pick<Reply, 'body' | 'contentType'> {
  const { value, encoding, mediaType } = members(data);
  if (ok && encoding === 'base64' && typeof value === 'string')
    return { body: Buffer.from(value, 'base64'), contentType: String(mediaType) };
  const isWrapped = ok && Object.keys(members(data)).join() === 'value';
  if (isWrapped && typeof value === 'string') return { body: Buffer.from(value), contentType: 'text/plain' };
  return { body: Buffer.from(JSON.stringify(isWrapped ? value : data) ?? ''), contentType: 'application/json' };
}
