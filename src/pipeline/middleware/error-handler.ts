/**
 * The last middleware: turns a thrown value into one GatewayError, which the call's own response
 * writer answers in the words of its protocol.
 */

import type { ErrorRequestHandler } from 'express';
import { asGatewayError, GatewayError } from '../../errors.ts';
import { type CallIds, idsOf } from '../../server/http/access-record.ts';
import { sendError } from '../../server/http/respond.ts';
import { annotationsOfFunded, type Call, currentCall, type PaymentAnnotations } from '../call.ts';

/** The parts of a failure that the log may have, on every channel. */
export type Failure = Pick<GatewayError, 'status' | 'message' | 'cause'> & { readonly code: string };

/** Gets each failure before it is answered; the log decides what is worth a line. */
export type FailureListener = (error: Failure, ids: CallIds) => void;

/** Events of a call that ended with an error still reach the feed. */
export function errorHandler(onFailure: FailureListener): ErrorRequestHandler {
  // Express knows an error handler by its four parameters.
  return function errorMiddleware(thrown: unknown, _req, res, _next) {
    const error = fromFramework(thrown) ?? asGatewayError(thrown);
    const ids = idsOf(res);
    onFailure(error, ids);
    const call = currentCall(res);
    if (call === undefined) {
      sendError(res, error, ids.requestId);
      return;
    }
    if (call.stage === 'received') {
      call.responseWriter.failed(error, {});
      return;
    }
    call.journal.refused(error.code, error.details?.reason);
    const receipt = error.details?.receipt;
    const refused = receipt === undefined ? {} : { mandateReceipt: receipt };
    call.responseWriter.failed(error, { resourceId: call.resource.id, ...annotationsOf(call), ...refused });
  };
}

/** The statements of a failed call about the buyer's money and the mandate that it used up. */
function annotationsOf(call: Exclude<Call, { readonly stage: 'received' }>): PaymentAnnotations {
  if (call.stage === 'proven') return call.annotations ?? {};
  return 'funding' in call ? annotationsOfFunded(call) : {};
}

/** Express's router refuses a path that it cannot percent-decode with an error of its own. */
function fromFramework(thrown: unknown): GatewayError | undefined {
  if (thrown instanceof URIError)
    return new GatewayError('INPUT_INVALID', {
      message: 'The path is not well-formed.',
      details: { reason: 'malformed_path' },
    });
  return undefined;
}
