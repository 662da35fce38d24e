/**
 * The last step of a call: hands the answer to the caller and writes down how that ended. A paid
 * answer is copied, digested and signed while it passes.
 */

import { createHash, hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { RequestHandler } from 'express';
import type { BackendAnswer } from '../../backend/backend-exchange.ts';
import { ANSWER_BUFFER_BYTES } from '../../backend/backend-exchange.ts';
import { relayedHeaders } from '../../backend/header-policy.ts';
import { GatewayError } from '../../errors.ts';
import { protocolOf } from '../../events/event.ts';
import type { JsonObject } from '../../json/json.ts';
import type { DeliveryRecorder } from '../../payments/delivery/delivery-recorder.ts';
import type { PurchaseSigner } from '../../payments/delivery/purchase-signer.ts';
import { type KeptAnswer, MAX_KEPT_BYTES, type PaymentRecord } from '../../payments/ledger/ledger.ts';
import { passed } from '../../payments/settlement/attempt.ts';
import { inputDigest } from '../../payments/settlement/terms.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';
import { channelOf, type Receipt, type ReceiptDigests, unpaidReceipt } from '../../receipts/receipt.ts';
import { isRepeatable } from '../../resources/resource.ts';
import { elapsedMs } from '../../time/time.ts';
import { type AnsweredCall, annotationsOfFunded, callAt, type RelayOptions } from '../call.ts';
import { backendFailed, MANDATE_USED, undeliveredError } from './forward.ts';

/** `metadata.backendErrorCode` of a paid call whose answer came and was not sent. */
const FAILURES = { client_gone: 'client_gone', failed: 'internal_error', busy: 'gateway_busy' } as const;
/** `details.reason` of a paid answer that the process had no memory for. */
const NO_ROOM = 'gateway_busy';

/** An answer is delivered only when it has been sent completely. */
export function deliver(
  deliveries: DeliveryRecorder,
  receipts: { push(receipt: Receipt): void },
  signer?: PurchaseSigner,
): RequestHandler {
  return async function deliverMiddleware(_req, res) {
    const call = callAt(res, 'answered');
    const { funding, responseWriter, answer, journal, keptBefore } = call;
    const paid = funding.kind === 'paid' ? funding : undefined;
    const captured = paid && captureAnswer(answer);
    const signed = paid && signer && signDelivery(signer, paid.record, paid.response, call.input, answer);
    if (paid !== undefined) passed('relaying', paid.record.payId);
    const sending = paid === undefined ? {} : { sending: () => deliveries.sending(paid.record) };
    const relayed = await responseWriter
      .relay(answer, { ...annotationsOfFunded(call), ...signed?.annotations, ...sending })
      .catch((bug: unknown) => ({ kind: 'failed', bug }) as const);
    if (relayed.kind === 'broken') {
      const { reason, requestWritten } = relayed.error;
      const failed = { reason, status: answer.status, requestWritten, cause: relayed.error, sent: relayed.sent };
      // A caller that has the head already learns of it from the broken connection.
      throw await backendFailed({ ...call, stage: 'funded' }, deliveries, failed);
    }
    // A bought answer that cannot be sent now is read all the same: once kept, it can be collected
    // without a second execution.
    if (relayed.kind === 'busy') await (paid !== undefined ? readOn(answer.body) : answer.body.destroy());
    const finished = relayed.kind === 'finished';
    const durationMs = elapsedMs(call);
    const data = { status: answer.status, ...(relayed.kind === 'client_gone' ? { clientGone: true } : {}) };
    if (!keptBefore) journal.record('backend.called', { status: 'ok', durationMs, data });
    if (finished) journal.record('resource.delivered', { status: 'ok', durationMs });
    if (paid === undefined) {
      journal.flush();
      if (finished) receipts.push(receiptOfFreeCall(call));
      if (relayed.kind === 'failed') throw relayed.bug;
      if (relayed.kind === 'busy') throw noRoomForFree(call);
      return;
    }
    const { record, lease } = paid;
    const { answer: kept, tooLarge = false } = captured?.() ?? {};
    const facts = {
      requestId: call.requestId,
      callId: call.callId,
      backendStatus: answer.status,
      durationMs,
      journal,
      lease,
      answer: kept,
      keptBefore,
      digests: signed?.digests(),
    };
    passed('relayed', record.payId);
    if (finished) await deliveries.delivered(record, facts);
    else {
      // The reconciler fetches no answer that is too large to be kept: its buyer has to ask for it.
      const repeatable = isRepeatable(call.resource.backend) && !tooLarge;
      const failure = { code: FAILURES[relayed.kind] };
      const sent = relayed.kind === 'client_gone' ? relayed.sent : undefined;
      await deliveries.undelivered(record, { ...facts, failure, requestWritten: true, repeatable, sent });
    }
    if (relayed.kind === 'failed') throw relayed.bug;
    if (relayed.kind === 'busy')
      throw undeliveredError(record, {
        details: { status: answer.status, reason: NO_ROOM },
        retryable: kept !== undefined || isRepeatable(call.resource.backend),
      });
  };
}

function noRoomForFree({ authorization }: AnsweredCall): GatewayError {
  return authorization === undefined
    ? new GatewayError('GATEWAY_BUSY')
    : new GatewayError('GATEWAY_BUSY', { message: MANDATE_USED, retryable: false });
}

function receiptOfFreeCall(call: AnsweredCall): Receipt {
  return unpaidReceipt({
    requestId: call.requestId,
    resourceId: call.resource.id,
    protocol: protocolOf(call.channel),
    backendStatus: call.answer.status,
    durationMs: elapsedMs(call),
    metadata: { callId: call.callId, ...channelOf(call.channel) },
    ...(call.authorization === undefined ? {} : { authorization: call.authorization.summary }),
  });
}

interface CapturedAnswer {
  /** Undefined when the answer broke off, or when it is too large. */
  readonly answer: KeptAnswer | undefined;
  readonly tooLarge: boolean;
}

/**
 * Copies an answer while a response writer reads it. Call it before the reader is attached, in the
 * same turn; ask the result once the answer has ended.
 */
export function captureAnswer(answer: BackendAnswer): () => CapturedAnswer {
  const { status, headers, whole } = answer;
  if (whole !== undefined) {
    const kept = { status, headers: relayedHeaders(headers, { free: false, status }), body: whole };
    return () => ({ answer: kept, tooLarge: false });
  }
  return captureStream(answer);
}

function captureStream({ status, headers, body }: BackendAnswer): () => CapturedAnswer {
  let chunks: Uint8Array[] | undefined = [];
  let bytes = 0;
  let ended = false;
  body.on('data', (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    // An answer above the limit is never kept, so its copy is dropped at once.
    if (bytes > MAX_KEPT_BYTES) chunks = undefined;
    else chunks?.push(chunk);
  });
  body.once('end', () => {
    ended = true;
  });
  return () => ({
    answer:
      ended && chunks !== undefined
        ? { status, headers: relayedHeaders(headers, { free: false, status }), body: Buffer.concat(chunks) }
        : undefined,
    tooLarge: chunks === undefined,
  });
}

/** Reads on to the end of an answer, or to its failure, for the copy of it. */
export async function readOn(body: BackendAnswer['body']): Promise<void> {
  if (body.closed) return;
  body.once('error', () => undefined);
  body.resume();
  await new Promise<void>((resolve) => body.once('close', resolve));
}

/** A kept answer in the shape of a fresh one; a short one is there as a whole. */
export function asAnswer({ status, headers, body: bytes }: KeptAnswer): BackendAnswer {
  let body: Readable | undefined;
  return {
    status,
    headers,
    ...(bytes.byteLength > ANSWER_BUFFER_BYTES ? {} : { whole: bytes }),
    get body() {
      body ??= Readable.from(bytes.byteLength === 0 ? [] : [bytes], { objectMode: false });
      return body;
    },
  };
}

interface SignedDelivery {
  /** For the relay of the answer. */
  readonly annotations: Pick<RelayOptions, 'payment' | 'statement'>;
  /** Undefined until the answer has been read to its end. */
  digests(): ReceiptDigests | undefined;
}

/**
 * Signs the receipt of a payment and prepares the statement of its delivery. Call it before a
 * reader of the answer is attached, in the same turn.
 */
export function signDelivery(
  signer: PurchaseSigner,
  record: PaymentRecord,
  response: PaymentResponse,
  input: JsonObject,
  answer: BackendAnswer,
): SignedDelivery {
  const sumOf = digestAnswer(answer);
  let made: ReceiptDigests | undefined;
  const digests = (): ReceiptDigests | undefined => {
    const sum = sumOf();
    if (sum !== undefined) made ??= { input: inputDigest(input), ...sum };
    return made;
  };
  return {
    annotations: {
      payment: signer.withReceipt(response, record),
      statement: () =>
        signer.statement(record, {
          state: 'delivered',
          digests: digests(),
          status: answer.status,
          deliveredAt: Date.now(),
        }),
    },
    digests,
  };
}

type AnswerDigest = Pick<ReceiptDigests, 'answer' | 'bytes'>;

function digestAnswer(answer: BackendAnswer): () => AnswerDigest | undefined {
  const { whole } = answer;
  if (whole !== undefined) {
    const sum = { answer: hash('sha256', whole, 'hex'), bytes: whole.byteLength };
    return () => sum;
  }
  // `body` is asked for only here: once it was asked for, `whole` is undefined.
  const { body } = answer;
  const running = createHash('sha256');
  let bytes = 0;
  let sum: AnswerDigest | undefined;
  body.on('data', (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    running.update(chunk);
  });
  body.once('end', () => {
    sum = { answer: running.digest('hex'), bytes };
  });
  return () => sum;
}
