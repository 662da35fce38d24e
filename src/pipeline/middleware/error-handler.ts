import type { ErrorRequestHandler } from 'express';
import { asGatewayError, GatewayError } from '../../errors.ts';
import { type CallIds, idsOf } from '../../server/http/request-id.ts';
import { sendError } from '../../server/http/respond.ts';
import { annotationsOfFunded, type Call, currentCall, type PaymentAnnotations } from '../call.ts';

/** What the log may know of a failure, in whichever protocol's words it is answered. */
export type Failure = Pick<GatewayError, 'status' | 'message' | 'cause'> & { readonly code: string };

/** Told about every failure before it is answered; the log decides what is worth a line. */
export type FailureListener = (error: Failure, ids: CallIds) => void;

/**
 * The last middleware: whatever was thrown becomes one GatewayError, and the call's own response
 * writer says it in its protocol's words. Events of a call that ended here still reach the feed.
 */
export function errorHandler(onFailure: FailureListener): ErrorRequestHandler {
  // Express tells an error layer by its four parameters.
  return function presentLayer(thrown: unknown, _req, res, _next) {
    const error = fromFramework(thrown) ?? asGatewayError(thrown);
    const ids = idsOf(res);
    const { requestId } = ids;
    onFailure(error, ids);
    const call = currentCall(res);
    if (call === undefined || call.stage === 'received') {
      if (call === undefined) sendError(res, error, requestId);
      else call.responseWriter.failed(error, {});
      return;
    }
    call.journal.flush();
    const receipt = error.details?.receipt;
    const refused = receipt === undefined ? {} : { mandateReceipt: receipt };
    call.responseWriter.failed(error, { resourceId: call.resource.id, ...saidOf(call), ...refused });
  };
}

/**
 * What a failed call still has to say about the buyer's money, and about the mandate that it used
 * up.
 */
function saidOf(call: Exclude<Call, { readonly stage: 'received' }>): PaymentAnnotations {
  if (call.stage === 'proven') return call.said ?? {};
  return 'funding' in call ? annotationsOfFunded(call) : {};
}

/** Express's router refuses a path it cannot percent-decode with an error of its own. */
function fromFramework(thrown: unknown): GatewayError | undefined {
  if (thrown instanceof URIError)
    return new GatewayError('INPUT_INVALID', {
      message: 'The path is not well-formed.',
      details: { reason: 'malformed_path' },
    });
  return undefined;
}
