/** Writes outcomes as tasks: specification 3, contract 7.2. No outcome is ever a JSON-RPC error. */

import type { Response } from 'express';
import { errorEnvelope, type GatewayError } from '../../errors.ts';
import { isObject } from '../../json/types.ts';
import type { Challenge } from '../../payments/x402/wire/challenge.ts';
import type { ResponseWriter } from '../../pipeline/call.ts';
import type { AnswerBudget } from '../../server/load-shedding/answer-budget.ts';
import { type AnswerContent, MAX_BUFFERED_BYTES, withContent } from '../json-rpc/answer-content.ts';
import { type RpcId, resultText } from '../json-rpc/message.ts';
import {
  deliveryMember,
  mandateReceiptMember,
  paymentMember,
  requestIdMember,
  statementMember,
} from '../json-rpc/metadata.ts';
import { sendRpc, sendRpcWatched } from '../json-rpc/send.ts';
import { TaskTaken } from './parked-task.ts';
import type { Purchase } from './purchase.ts';
import { type TaskNames, type TaskOutcome, taskResult } from './task.ts';
import {
  challengeMembers,
  declinedMembers,
  failureMembers,
  PAYMENT_PAYLOAD,
  paymentMembers,
} from './x402-extension.ts';

/** One SendMessage, as far as its answer depends on it. */
interface MessageCall extends Pick<Purchase, 'resourceId' | 'task' | 'park' | 'parked' | 'open'> {
  readonly id: RpcId;
  readonly requestId: string;
  /** Answers with a JSON-RPC error: the outcome of the other payment is not disclosed. */
  readonly refuseTaken: () => void;
}

/** Ids that a resource can have; no other text of a caller becomes the name of an artifact. */
const RESOURCE_ID = /^[A-Za-z0-9._-]{1,128}$/;
const UNNAMED = 'error';
const PAID = 'The payment was settled and the resource delivered.';
/** Failures after which the same payment cannot buy the task: its key or its mandate is wrong. */
const WORTHLESS: ReadonlySet<string> = new Set([
  'INPUT_INVALID',
  'AUTHORIZATION_REQUIRED',
  'AUTHORIZATION_INVALID',
  'AUTHORIZATION_REPLAYED',
]);

export function a2aResponseWriter(res: Response, call: MessageCall, budget: AnswerBudget): ResponseWriter {
  const { requestId, resourceId } = call;
  const sendable = (outcome: TaskOutcome, task = call.task): string => resultText(call.id, taskResult(task, outcome));
  return {
    maxAnswerBytes: MAX_BUFFERED_BYTES,
    paymentRequired(challenge, payment) {
      const ask = (parkedAs: string | undefined): void => {
        const waits = parkedAs !== undefined;
        const outcome: TaskOutcome = {
          state: waits ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_FAILED',
          message: { text: howToPay(call, challenge, waits), metadata: challengeMembers(challenge, payment) },
          artifact: { name: resourceId, data: challenge.body, metadata: paymentMember(payment) },
          metadata: requestIdMember(requestId),
        };
        sendRpc(res, 200, sendable(outcome, waits ? { ...call.task, taskId: parkedAs } : call.task));
      };
      if (call.park === undefined) ask(call.open ? call.task.taskId : undefined);
      else void call.park().then(ask, () => res.destroy());
    },
    failed(error, { resourceId: known, payment, mandateReceipt }) {
      if (error instanceof TaskTaken) {
        call.refuseTaken();
        return;
      }
      for (const [name, value] of Object.entries(error.headers)) if (!res.headersSent) res.setHeader(name, value);
      // After a payment that cannot pay here the task stays open for another one.
      const waits = isWorthless(error) ? call.open : call.parked && error.retryable;
      const outcome: TaskOutcome = {
        state: waits ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_FAILED',
        message: { text: error.message, metadata: failureMembers(error, payment) },
        artifact: {
          name: RESOURCE_ID.test(resourceId) ? resourceId : UNNAMED,
          data: JSON.stringify(errorEnvelope(error, requestId, known)),
          metadata: paymentMember(payment),
        },
        metadata: { ...requestIdMember(requestId), ...mandateReceiptMember(mandateReceipt) },
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
            metadata: { ...delivery, ...paymentMember(payment), ...statementMember(statement?.()) },
          },
          metadata: { ...delivery, ...requestIdMember(requestId), ...mandateReceiptMember(mandateReceipt) },
        };
        return sendRpcWatched(res, sendable(outcome), sending);
      });
    },
  };
}

/** The result of SendMessage for a buyer who declined to pay. */
export function canceledTask(task: TaskNames, requestId: string): string {
  return taskResult(task, {
    state: 'TASK_STATE_CANCELED',
    message: { text: 'The payment was declined, so nothing was bought.', metadata: declinedMembers() },
    metadata: requestIdMember(requestId),
  });
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

/** The text for a model: what is asked or what was wrong, and where the payment goes. */
function howToPay({ parked }: MessageCall, { refusal, message }: Challenge, waits: boolean): string {
  const again = parked ? 'send the order again, without taskId, with it' : 'send the message again with it';
  return (
    `${refusal?.message ?? message} Sign one entry of accepts into a PaymentPayload and ${waits ? 'send it with this taskId' : again} in ` +
    `metadata["${PAYMENT_PAYLOAD}"]${waits ? '' : ', or as base64 in input._payment'}.`
  );
}

/** Whether the payment has bought nothing here and cannot: it also may belong to another call. */
function isWorthless({ code, details }: GatewayError): boolean {
  return WORTHLESS.has(code) || (code === 'PAYMENT_REPLAYED' && details?.state === 'used');
}
