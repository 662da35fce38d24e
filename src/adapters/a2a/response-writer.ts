import type { Response } from 'express';
import { errorEnvelope, type GatewayError } from '../../errors.ts';
import type { Challenge } from '../../payments/x402/wire/challenge.ts';
import type { ResponseWriter } from '../../pipeline/call.ts';
import type { AnswerBudget } from '../../server/load-shedding/answer-budget.ts';
import { MAX_BUFFERED_BYTES, withContent } from '../json-rpc/answer-content.ts';
import { type RpcId, resultText } from '../json-rpc/message.ts';
import { deliveryMember, mandateReceiptMember, paidMember, requestIdMember } from '../json-rpc/metadata.ts';
import { sendRpc, sendRpcWatched } from '../json-rpc/send.ts';
import { deliveredData } from './delivered.ts';
import { TaskTaken } from './parked-task.ts';
import { askedMembers, declinedMembers, failedMembers, paidMembers } from './payment-status.ts';
import type { Purchase } from './purchase.ts';
import { type TaskNames, type TaskOutcome, taskResult } from './task.ts';
import { PAYMENT_PAYLOAD } from './x402-keys.ts';

/** One SendMessage as its answer needs it. */
interface MessageCall extends Pick<Purchase, 'resourceId' | 'task' | 'wait' | 'waiting' | 'open'> {
  readonly id: RpcId;
  readonly requestId: string;
  /** Says that the task has another payment: no task, because what became of it is not this caller's affair. */
  readonly taken: () => void;
}

/** What a resource can be called; anything else is not said back as the name of an artifact. */
const RESOURCE_ID = /^[A-Za-z0-9._-]{1,128}$/;
const UNNAMED = 'error';

/** Outcomes as tasks: SPEC part 3, CONTRACT 7.2. A commerce outcome is never a JSON-RPC error. */
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
 * Failures of a payment that has bought nothing here, and cannot: it belongs to another call, came with a key that is none, or without a
 * mandate that lets it.
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
