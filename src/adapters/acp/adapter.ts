/**
 * The ACP adapter: the checkout service over REST, passed on to a backend that speaks it too. Every
 * request at the mount or below it ends here (`serve`), and so does every failure (`acpFailures`).
 */

import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import type { Idempotency } from '../../checkouts/idempotency.ts';
import type { Sessions } from '../../checkouts/sessions.ts';
import type { AcpSettings } from '../../checkouts/settings.ts';
import { noteChannel, noteOperation } from '../../server/http/access-record.ts';
import { onceClosed } from '../../server/http/once-closed.ts';
import { type CallIds, idsOf } from '../../server/http/request-id.ts';
import { clientGone } from '../../server/http/respond.ts';
import { belowMount, rawPath } from '../../server/http/target.ts';
import type { Guesses } from '../../server/rate-limit/failed-attempts.ts';
import type { Admission } from './admission.ts';
import type { BackendService } from './call.ts';
import { clientsByToken } from './clients.ts';
import { type AcpError, asAcpError, busy } from './error.ts';
import { bodyChecks, callerRequestIdOf, checkMediaType, checkVersion, idempotencyKeyOf, readBody } from './request.ts';
import { assertAccess, deliveredOf, outcomeOfError, sendAnswer, sendFailure } from './response.ts';
import { routeOf } from './routes.ts';

/** What the adapter is made of. */
interface AcpAdapterParts {
  readonly mountPath: string;
  readonly settings: Pick<AcpSettings, 'clients' | 'backend' | 'acceptLineItemQuantity'>;
  /** Middleware that every call passes before anything of it is compared or read. */
  readonly entrance: readonly RequestHandler[];
  /** Counts wrong tokens. */
  readonly guesses: Guesses;
  readonly admit: Admission;
  /** Holds calls while the backend restarts; `pass` resolves to false for one held in vain. */
  readonly fence: { up(): boolean; pass(): Promise<boolean> };
  readonly sessions: Pick<Sessions, 'access'>;
  readonly idempotency: Idempotency;
  readonly backend: BackendService;
  /** Notes how far a call has come. */
  readonly entered: (step: 'admit' | 'validate' | 'forward' | 'conclude', res: Response) => void;
}

/**
 * The order of the lines in `serve` is the order in which a call is checked, and the first failure
 * is the answer (acp 13.1).
 */
export function acpAdapter(parts: AcpAdapterParts): RequestHandler {
  const { mountPath, settings, entrance, guesses, admit, fence, sessions, idempotency, backend, entered } = parts;
  const clientOf = clientsByToken(settings.clients, guesses);
  const checkBody = bodyChecks(settings.acceptLineItemQuantity ? 'wire-quantity' : 'wire');

  async function serve(path: string, req: Request, res: Response): Promise<void> {
    const startedAt = performance.now();
    const { operation, sessionId } = routeOf(req.method, path);
    noteChannel(res, 'acp');
    await pass(entrance, req, res);
    const clientId = clientOf(req);
    noteOperation(res, operation);
    checkVersion(req);
    const keyed = operation === 'getCheckoutSession' ? undefined : { operation, key: idempotencyKeyOf(req) };
    const contentType = keyed === undefined ? undefined : checkMediaType(req);
    entered('admit', res);
    if (fence.up() && !(await fence.pass())) throw busy();
    const leave = admit(res);
    try {
      const left = clientGone(res);
      const { bytes, value } = await readBody({ operation, contentType }, req, res);
      entered('validate', res);
      checkBody(operation, value);
      if (sessionId !== undefined) assertAccess(await sessions.access(clientId, sessionId));
      entered('forward', res);
      const call = backend.open({
        operation,
        sessionId,
        clientId,
        ...idsOf(res),
        callerRequestId: callerRequestIdOf(req),
        caller: req.headersDistinct,
        body: bytes,
        contentType,
        startedAt,
      });
      const { timeoutMs } = settings.backend.operations[operation];
      const end =
        keyed === undefined
          ? await call.read(left)
          : await idempotency.run({ ...keyed, clientId, sessionId, body: value }, timeoutMs, call);
      entered('conclude', res);
      const delivered = deliveredOf(end);
      sendAnswer(res, delivered);
      if (await wentOut(res)) call.delivered(delivered);
    } finally {
      leave();
    }
  }

  return function serveCheckout(req, res, next) {
    const path = belowMount(mountPath, rawPath(req.url));
    return path === undefined ? next() : serve(path, req, res);
  };
}

/**
 * Answers everything that is thrown below the mount with an Error document: the envelope of the
 * gateway's own routes never leaves it there.
 */
export function acpFailures(
  mountPath: string,
  onFailure: (
    failure: Pick<AcpError, 'status' | 'message' | 'cause'> & { readonly code: string },
    ids: CallIds,
  ) => void,
): ErrorRequestHandler {
  return function answerCheckoutFailure(thrown: unknown, req, res, next) {
    if (belowMount(mountPath, rawPath(req.url)) === undefined) return next(thrown);
    const error = asAcpError(thrown);
    const { status, message, cause } = error;
    onFailure({ code: outcomeOfError(error.code), status, message, cause }, idsOf(res));
    sendFailure(res, error);
  };
}

/** Passes middleware one after the other. Rejects with the refusal of the first that refuses. */
async function pass(middleware: readonly RequestHandler[], req: Request, res: Response): Promise<void> {
  for (const step of middleware)
    await new Promise<void>((resolve, reject) => {
      step(req, res, (refusal?: unknown) => (refusal === undefined ? resolve() : reject(refusal)));
    });
}

/** Resolves when the answer is out, or cannot go out any more: whether it did. */
function wentOut(res: Response): Promise<boolean> {
  return new Promise((resolve) => onceClosed(res, () => resolve(res.writableFinished)));
}
