import type { Response } from 'express';
import { errorEnvelope, type GatewayError } from '../../errors.ts';
import { isObject } from '../../json/types.ts';
import type { Challenge } from '../../payments/x402/wire/challenge.ts';
import { paymentResponseDocument } from '../../payments/x402/wire/payment-response.ts';
import { NONCE_ALREADY_USED } from '../../payments/x402/wire/reasons.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';
import type { ResponseWriter } from '../../pipeline/call.ts';
import type { AnswerBudget } from '../../server/load-shedding/answer-budget.ts';
import { type AnswerContent, MAX_BUFFERED_BYTES, withContent } from '../json-rpc/answer-content.ts';
import { type RpcId, resultText } from '../json-rpc/message.ts';
import {
  deliveryMember,
  type Members,
  mandateReceiptMember,
  paidMember,
  requestIdMember,
} from '../json-rpc/metadata.ts';
import { sendRpc, sendRpcWatched } from '../json-rpc/send.ts';
import { TaskTaken } from './parked-task.ts';
import type { Purchase } from './purchase.ts';
import { type TaskNames, type TaskOutcome, taskResult } from './task.ts';
import { PAYMENT_ERROR, PAYMENT_PAYLOAD, PAYMENT_RECEIPTS, PAYMENT_REQUIRED, PAYMENT_STATUS } from './x402-keys.ts';

/**
 * What the merchant delivered as the JSON object of a data part: an object as it stands, everything
 * else as `{"value": ...}` (specification 3). Nothing is parsed and written again, so no number
 * loses a digit.
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

/** Error codes of the x402 extension (a2a-x402 v0.2, section 9). */
type PaymentError =
  | 'INSUFFICIENT_FUNDS'
  | 'INVALID_SIGNATURE'
  | 'EXPIRED_PAYMENT'
  | 'DUPLICATE_NONCE'
  | 'NETWORK_MISMATCH'
  | 'INVALID_AMOUNT'
  | 'SETTLEMENT_FAILED';

/** Our reasons (contract 1.3) in the words of the extension, as far as one fits. */
const ERRORS: ReadonlyMap<string, PaymentError> = new Map([
  ['insufficient_funds', 'INSUFFICIENT_FUNDS'],
  ['invalid_payload', 'INVALID_SIGNATURE'],
  ['invalid_exact_evm_payload_signature', 'INVALID_SIGNATURE'],
  ['contract_signature_not_supported', 'INVALID_SIGNATURE'],
  ['eip6492_factory_not_allowed', 'INVALID_SIGNATURE'],
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
function askedMembers({ document, refusal }: Challenge, payment: PaymentResponse | undefined): Members {
  const required = { [PAYMENT_REQUIRED]: document };
  if (refusal === undefined) return { ...status('payment-required'), ...required };
  // A word is wanted; where none fits, it must not say that something was sent when nothing was.
  const unnamed = refusal.code === 'PAYMENT_SETTLEMENT_FAILED' ? 'SETTLEMENT_FAILED' : 'INVALID_SIGNATURE';
  return { ...failed(ERRORS.get(refusal.reason) ?? unnamed), ...required, ...receipts(payment) };
}

/**
 * Metadata of a message about money that moved, or that may have moved. A free call says nothing.
 */
function paidMembers(payment: PaymentResponse | undefined): Members {
  if (payment === undefined) return {};
  if (payment.status === 'pending') return status('payment-submitted');
  return payment.success
    ? { ...status('payment-completed'), ...receipts(payment) }
    : { ...failed('SETTLEMENT_FAILED'), ...receipts(payment) };
}

/**
 * Metadata of a message about a call that failed. Nothing here ever says `payment-required`: a
 * client would sign a second payment while the first may still pay.
 */
function failedMembers(error: GatewayError, payment: PaymentResponse | undefined): Members {
  if (payment !== undefined) return paidMembers(payment);
  if (error.code !== 'PAYMENT_REPLAYED') return {};
  const state = error.details?.state;
  if (state === 'in_flight') return status('payment-submitted');
  // It paid for this purchase, however that ended: called failed, it would be signed again. Only
  // one of another call failed here.
  return { ...failed('DUPLICATE_NONCE'), ...(state === 'used' ? {} : status('payment-completed')) };
}

/** Metadata of a message to a buyer who does not want to pay. */
function declinedMembers(): Members {
  return status('payment-rejected');
}

function status(word: string): Members {
  return { [PAYMENT_STATUS]: JSON.stringify(word) };
}

function failed(code: PaymentError): Members {
  return { ...status('payment-failed'), [PAYMENT_ERROR]: JSON.stringify(code) };
}

function receipts(payment: PaymentResponse | undefined): Members {
  return payment === undefined ? {} : { [PAYMENT_RECEIPTS]: JSON.stringify([paymentResponseDocument(payment)]) };
}

/** One SendMessage as its answer needs it. */
interface MessageCall extends Pick<Purchase, 'resourceId' | 'task' | 'wait' | 'waiting' | 'open'> {
  readonly id: RpcId;
  readonly requestId: string;
  /**
   * Says that the task has another payment: no task, because what became of it is not this caller's
   * affair.
   */
  readonly taken: () => void;
}

/** What a resource can be called; anything else is not said back as the name of an artifact. */
const RESOURCE_ID = /^[A-Za-z0-9._-]{1,128}$/;
const UNNAMED = 'error';

/**
 * Outcomes as tasks: specification 3, contract 7.2. A commerce outcome is never a JSON-RPC error.
 */
export function a2aResponseWriter(res: Response, call: MessageCall, budget: AnswerBudget): ResponseWriter {
  const { requestId, resourceId } = call;
  const textOf = (outcome: TaskOutcome, task = call.task): string => resultText(call.id, taskResult(task, outcome));
  return {
    maxAnswerBytes: MAX_BUFFERED_BYTES,
    paymentRequired(challenge, payment) {
      const ask = (waitsAs: string | undefined): void => {
        const waits = waitsAs !== undefined;
        const outcome: TaskOutcome = {
          state: waits ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_FAILED',
          said: { text: howToPay(call, challenge, waits), metadata: askedMembers(challenge, payment) },
          artifact: { name: resourceId, data: challenge.body, metadata: paidMember(payment) },
          metadata: requestIdMember(requestId),
        };
        sendRpc(res, 200, textOf(outcome, waits ? { ...call.task, taskId: waitsAs } : call.task));
      };
      if (call.wait === undefined) ask(call.open ? call.task.taskId : undefined);
      else void call.wait().then(ask, () => res.destroy());
    },
    failed(error, { resourceId: known, payment, mandateReceipt }) {
      if (error instanceof TaskTaken) {
        call.taken();
        return;
      }
      for (const [name, value] of Object.entries(error.headers)) if (!res.headersSent) res.setHeader(name, value);
      // What can never pay here does not keep others from paying.
      const waits = isWorthless(error) ? call.open : call.waiting && error.retryable;
      sendRpc(
        res,
        200,
        textOf({
          state: waits ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_FAILED',
          said: { text: error.message, metadata: failedMembers(error, payment) },
          artifact: {
            name: RESOURCE_ID.test(resourceId) ? resourceId : UNNAMED,
            data: JSON.stringify(errorEnvelope(error, requestId, known)),
            metadata: paidMember(payment),
          },
          metadata: { ...requestIdMember(requestId), ...mandateReceiptMember(mandateReceipt) },
        }),
      );
    },
    relay(answer, answered) {
      const { payment, mandateReceipt } = answered;
      return withContent(answer, { budget, paid: payment !== undefined }, (content) => {
        const delivery = deliveryMember(call, answer.status, answered);
        return sendRpcWatched(
          res,
          textOf({
            state: 'TASK_STATE_COMPLETED',
            ...(payment === undefined ? {} : { said: { text: PAID, metadata: paidMembers(payment) } }),
            artifact: {
              name: resourceId,
              data: deliveredData(content),
              metadata: { ...delivery, ...paidMember(payment) },
            },
            metadata: { ...delivery, ...requestIdMember(requestId), ...mandateReceiptMember(mandateReceipt) },
          }),
          answered.sending,
        );
      });
    },
  };
}

/** The task of a buyer who does not pay, as the result of SendMessage. */
export function canceledTask(task: TaskNames, requestId: string): string {
  return taskResult(task, {
    state: 'TASK_STATE_CANCELED',
    said: { text: 'The payment was declined, so nothing was bought.', metadata: declinedMembers() },
    metadata: requestIdMember(requestId),
  });
}

const PAID = 'The payment was settled and the resource delivered.';

/** What a model reads: what is asked or what was wrong, and where the payment goes. */
function howToPay(call: Pick<MessageCall, 'waiting'>, { refusal, message }: Challenge, waits: boolean): string {
  const order = call.waiting ? 'send the order again, without taskId, with it' : 'send the message again with it';
  return (
    `${refusal?.message ?? message} Sign one entry of accepts into a PaymentPayload and ${waits ? 'send it with this taskId' : order} in ` +
    `metadata["${PAYMENT_PAYLOAD}"]${waits ? '' : ', or as base64 in input._payment'}.`
  );
}

/**
 * Failures of a payment that has bought nothing here, and cannot: it belongs to another call, came
 * with a key that is none, or without a mandate that lets it.
 */
function isWorthless({ code, details }: GatewayError): boolean {
  return WORTHLESS.has(code) || (code === 'PAYMENT_REPLAYED' && details?.state === 'used');
}

const WORTHLESS: ReadonlySet<string> = new Set([
  'INPUT_INVALID',
  'AUTHORIZATION_REQUIRED',
  'AUTHORIZATION_INVALID',
  'AUTHORIZATION_REPLAYED',
]);
