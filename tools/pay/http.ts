/** Calls a resource over HTTP: at its invoke URL, or in place at an address of its own. */

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

/** A settlement may take a minute, milliseconds. */
const ANSWER_TIMEOUT_MS = 120_000;
/** Longest answer, decompressed bytes. */
const MAX_ANSWER_BYTES = 16_777_216;
/** These say for themselves that the same request may be sent again. */
const BUSY: ReadonlySet<number> = new Set([429, 503]);

/** What is sent each time. */
interface HttpCall {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

export function httpChannel({ url, method, headers, body }: HttpCall): Channel {
  return {
    async send(payment) {
      const paid = payment && { 'payment-signature': payment.proof, 'idempotency-key': payment.idempotencyKey };
      const response = await fetch(url, {
        method,
        headers: { ...headers, ...paid },
        ...(body === undefined ? {} : { body }),
        // A proof goes to the server that asked for it alone.
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      });
      const answer = await bytesOf(response);
      if (answer !== undefined) return replyOf(response, answer);
      const why = `The answer is too large: more than ${MAX_ANSWER_BYTES} bytes.`;
      return { ...replyOf(response, new Uint8Array()), ok: false, why, againInMs: undefined };
    },
  };
}

/** Undefined for a body that is too large; its rest is not read. */
async function bytesOf({ body }: Response): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.byteLength;
    if (length > MAX_ANSWER_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function replyOf({ ok, status, headers }: Response, body: Uint8Array): Reply {
  const envelope = ok ? undefined : jsonOf(Buffer.from(body).toString());
  const asked = headers.get('payment-required');
  const saysItself = members(envelope)['retryable'] !== undefined;
  const settlement = settlementOf(base64JsonOf(headers.get('payment-response') ?? ''));
  // Some servers have it in the body alone.
  const challenge = status === 402 ? challengeOf(asked === null ? envelope : base64JsonOf(asked), envelope) : undefined;
  // A merchant may sell a 4xx; then the gateway has a receipt and says nothing of a failure.
  const isReceipt = settlement?.success === true && settlement.receiptId !== undefined;
  const isSold = isReceipt && !saysItself && challenge === undefined;
  return {
    ok: ok || isSold,
    status: String(status),
    why: whyOf(envelope),
    contentType: headers.get('content-type') ?? undefined,
    body,
    challenge,
    settlement,
    againInMs: waitOf(saysItself ? envelope : { retryable: BUSY.has(status) }, headers.get('retry-after') ?? undefined),
  };
}
