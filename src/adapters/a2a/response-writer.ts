/** Writes outcomes as tasks: specification 3, contract 7.2. No outcome is ever a JSON-RPC error. */

import { randomUUID } from 'node:crypto';
import type { Response } from 'express';
import { errorEnvelope, type GatewayError } from '../../errors.ts';
import { isObject } from '../../json/json.ts';
import type { Challenge } from '../../payments/x402/wire/challenge.ts';
import { NONCE_ALREADY_USED } from '../../payments/x402/wire/reasons.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';
import type { ResponseWriter } from '../../pipeline/call.ts';
import type { AnswerBudget } from '../../server/limits/load-shedding.ts';
import { isoTime } from '../../time/time.ts';
import { type AnswerContent, MAX_BUFFERED_BYTES, withContent } from '../json-rpc/answer-content.ts';
import {
  annotationMembers,
  deliveryMember,
  type Members,
  membersText,
  type RpcId,
  resultText,
  sendRpc,
  sendRpcWatched,
} from '../json-rpc/message.ts';

/** One SendMessage, as far as its answer depends on it. */
interface MessageCall {
  readonly id: RpcId;
  readonly requestId: string;
  readonly resourceId: string;
}

/** Ids that a resource can have; no other text of a caller becomes the name of an artifact. */
const RESOURCE_ID = /^[A-Za-z0-9._-]{1,128}$/;
const UNNAMED = 'error';
const PAID = 'The payment was settled and the resource delivered.';

export function a2aResponseWriter(res: Response, call: MessageCall, budget: AnswerBudget): ResponseWriter {
  const { requestId, resourceId } = call;
  const sendable = (outcome: TaskOutcome): string => resultText(call.id, taskResult(outcome));
  return {
    maxAnswerBytes: MAX_BUFFERED_BYTES,
    paymentRequired(challenge, payment) {
      const outcome: TaskOutcome = {
        state: 'TASK_STATE_FAILED',
        message: { text: howToPay(challenge), metadata: challengeMembers(challenge, payment) },
        artifact: { name: resourceId, data: challenge.body, metadata: annotationMembers({ payment }) },
        metadata: annotationMembers({ requestId }),
      };
      sendRpc(res, 200, sendable(outcome));
    },
    failed(error, { resourceId: known, payment, mandateReceipt }) {
      for (const [name, value] of Object.entries(error.headers)) if (!res.headersSent) res.setHeader(name, value);
      const outcome: TaskOutcome = {
        state: 'TASK_STATE_FAILED',
        message: { text: error.message, metadata: failureMembers(error, payment) },
        artifact: {
          name: RESOURCE_ID.test(resourceId) ? resourceId : UNNAMED,
          data: JSON.stringify(errorEnvelope(error, requestId, known)),
          metadata: annotationMembers({ payment }),
        },
        metadata: annotationMembers({ requestId, mandateReceipt }),
      };
      sendRpc(res, 200, sendable(outcome));
    },
    relay(answer, annotations) {
      const { payment, mandateReceipt, statement, sending } = annotations;
      return withContent(answer, { budget, paid: payment !== undefined }, (content) => {
        const delivery = deliveryMember(call, answer.status, annotations);
        const outcome: TaskOutcome = {
          state: 'TASK_STATE_COMPLETED',
          ...(payment === undefined ? {} : { message: { text: PAID, metadata: paymentMembers(payment) } }),
          artifact: {
            name: resourceId,
            data: deliveredData(content),
            metadata: { ...delivery, ...annotationMembers({ payment, statement: statement?.() }) },
          },
          metadata: { ...delivery, ...annotationMembers({ requestId, mandateReceipt }) },
        };
        return sendRpcWatched(res, sendable(outcome), sending);
      });
    },
  };
}

/**
 * The backend's answer as the JSON object of a data part: an object as it stands, everything else
 * as `{"value": ...}` (specification 3). JSON keeps its spelling, so no number loses a digit.
 */
export function deliveredData(content: AnswerContent): string {
  switch (content.kind) {
    case 'json':
      return isObject(content.value) ? content.text : `{"value":${content.text}}`;
    case 'text':
      return JSON.stringify({ value: content.text });
    case 'empty':
      return '{"value":null}';
    case 'bytes': {
      const { base64, mediaType, contentEncoding } = content;
      const compressed = contentEncoding === undefined ? {} : { contentEncoding };
      return JSON.stringify({ value: base64, encoding: 'base64', mediaType, ...compressed });
    }
  }
}

/** The text for a model: the demand or the fault of a proof, and the place of the payment. */
function howToPay({ refusal, message }: Challenge): string {
  return (
    `${refusal?.message ?? message} Sign one entry of accepts into a PaymentPayload and send the message again with it in ` +
    `metadata["${PAYMENT_PAYLOAD}"], or as base64 in input._payment.`
  );
}

/** The ids of a task, which its message repeats. */
interface TaskNames {
  readonly taskId: string;
  readonly contextId: string;
}

interface TaskOutcome {
  /** A state that a call can end in (A2A 1.0, TaskState, ProtoJSON spelling). */
  readonly state: 'TASK_STATE_COMPLETED' | 'TASK_STATE_FAILED';
  /** One sentence of the agent, with the metadata of the x402 extension. */
  readonly message?: { readonly text: string; readonly metadata: Members };
  readonly artifact: {
    readonly name: string;
    /** A JSON object as text, which is inserted as it is. */
    readonly data: string;
    readonly metadata: Members;
  };
  readonly metadata: Members;
}

/**
 * The result of SendMessage as JSON text: `{"task": Task}` with members of A2A 1.0 only (a2a 4),
 * and never `history`, which would repeat the buyer's proof.
 */
function taskResult({ state, message, artifact, metadata }: TaskOutcome): string {
  const task: TaskNames = { taskId: randomUUID(), contextId: randomUUID() };
  const names = `"id":"${task.taskId}","contextId":"${task.contextId}"`;
  const messageMember = message === undefined ? '' : `"message":${agentMessage(task, message)},`;
  const status = `{"state":"${state}",${messageMember}"timestamp":"${isoTime()}"}`;
  return `{"task":{${names},"status":${status},"artifacts":[${artifactText(artifact)}],"metadata":{${membersText(metadata)}}}}`;
}

function agentMessage(task: TaskNames, { text, metadata }: NonNullable<TaskOutcome['message']>): string {
  const names = `"contextId":"${task.contextId}","taskId":"${task.taskId}"`;
  const content = `"role":"ROLE_AGENT","parts":[{"text":${JSON.stringify(text)}}]`;
  return `{"messageId":"${randomUUID()}",${names},${content}${metadataMember(metadata)}}`;
}

function artifactText({ name, data, metadata }: TaskOutcome['artifact']): string {
  const parts = `"parts":[{"data":${data},"mediaType":"application/json"}]`;
  return `{"artifactId":"${randomUUID()}","name":${JSON.stringify(name)},${parts}${metadataMember(metadata)}}`;
}

function metadataMember(metadata: Members): string {
  const written = membersText(metadata);
  return written === '' ? '' : `,"metadata":{${written}}`;
}

/** Members of a message's metadata. */
const PAYMENT_STATUS = 'x402.payment.status';
export const PAYMENT_PAYLOAD = 'x402.payment.payload';
const PAYMENT_REQUIRED = 'x402.payment.required';
const PAYMENT_RECEIPTS = 'x402.payment.receipts';
const PAYMENT_ERROR = 'x402.payment.error';

/** Error codes of the extension (a2a-x402 v0.2, section 9). */
type PaymentError =
  | 'INSUFFICIENT_FUNDS'
  | 'INVALID_SIGNATURE'
  | 'EXPIRED_PAYMENT'
  | 'DUPLICATE_NONCE'
  | 'NETWORK_MISMATCH'
  | 'INVALID_AMOUNT'
  | 'SETTLEMENT_FAILED';

/** The code for each reason of the gateway (contract 1.3) that has one. */
const ERRORS: ReadonlyMap<string, PaymentError> = new Map([
  ['insufficient_funds', 'INSUFFICIENT_FUNDS'],
  ['invalid_payload', 'INVALID_SIGNATURE'],
  ['invalid_exact_evm_payload_signature', 'INVALID_SIGNATURE'],
  ['contract_signature_not_supported', 'INVALID_SIGNATURE'],
  ['eip6492_factory_not_allowed', 'INVALID_SIGNATURE'],
  ['test_payer_not_allowed', 'INVALID_SIGNATURE'],
  ['invalid_exact_evm_payload_authorization_valid_after', 'EXPIRED_PAYMENT'],
  ['invalid_exact_evm_payload_authorization_valid_before', 'EXPIRED_PAYMENT'],
  [NONCE_ALREADY_USED, 'DUPLICATE_NONCE'],
  ['invalid_network', 'NETWORK_MISMATCH'],
  ['invalid_scheme', 'NETWORK_MISMATCH'],
  ['invalid_payment_requirements', 'INVALID_AMOUNT'],
  ['invalid_exact_evm_payload_authorization_value_mismatch', 'INVALID_AMOUNT'],
  ['invalid_exact_evm_payload_recipient_mismatch', 'INVALID_AMOUNT'],
]);

/** Metadata of a message that asks for a payment, or for another one after a refusal. */
function challengeMembers({ document, refusal }: Challenge, payment: PaymentResponse | undefined): Members {
  const required = { [PAYMENT_REQUIRED]: document };
  if (refusal === undefined) return { ...status('payment-required'), ...required };
  // The extension demands a code. Only a failed settlement may claim that something was sent.
  const unnamed = refusal.code === 'PAYMENT_SETTLEMENT_FAILED' ? 'SETTLEMENT_FAILED' : 'INVALID_SIGNATURE';
  return { ...failed(ERRORS.get(refusal.reason) ?? unnamed), ...required, ...receipts(payment) };
}

/** Metadata of a message about money that moved, or that may have moved; empty for a free call. */
function paymentMembers(payment: PaymentResponse | undefined): Members {
  if (payment === undefined) return {};
  if (payment.status === 'pending') return status('payment-submitted');
  return payment.success
    ? { ...status('payment-completed'), ...receipts(payment) }
    : { ...failed('SETTLEMENT_FAILED'), ...receipts(payment) };
}

/**
 * Metadata of a message about a call that failed. It never has `payment-required`: a client would
 * sign a second payment while the first may still pay.
 */
function failureMembers(error: GatewayError, payment: PaymentResponse | undefined): Members {
  if (payment !== undefined) return paymentMembers(payment);
  if (error.code !== 'PAYMENT_REPLAYED') return {};
  const state = error.details?.state;
  if (state === 'in_flight') return status('payment-submitted');
  // The payment of this purchase is `payment-completed`, however the purchase ended: after
  // `payment-failed` a client signs anew. Only a payment that another call used has failed here.
  return { ...failed('DUPLICATE_NONCE'), ...(state === 'used' ? {} : status('payment-completed')) };
}

function status(word: string): Members {
  return { [PAYMENT_STATUS]: JSON.stringify(word) };
}

function failed(code: PaymentError): Members {
  return { ...status('payment-failed'), [PAYMENT_ERROR]: JSON.stringify(code) };
}

function receipts(payment: PaymentResponse | undefined): Members {
  return payment === undefined ? {} : { [PAYMENT_RECEIPTS]: JSON.stringify([payment]) };
}
