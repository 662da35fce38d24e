/**
 * The ACP adapter: the checkout service over REST, passed on to a backend that speaks it too. Every
 * request at the mount or below it ends here (`serve`), and so does every failure (`acpFailures`).
 */

import type { IncomingMessage } from 'node:http';
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import type { AttemptEnd, FinalAnswer, KeyedEnd } from '../../checkouts/attempts.ts';
import type { createIdempotency } from '../../checkouts/machine.ts';
import type { Access, Sessions } from '../../checkouts/sessions.ts';
import type { AcpClient, AcpSettings } from '../../checkouts/settings.ts';
import { isObject, type Json } from '../../json/json.ts';
import { type CallIds, idsOf, note, noteOutcome, type Outcome, onceClosed } from '../../server/http/access-record.ts';
import { belowMount, ownersOf, rawPath, readHeader } from '../../server/http/request.ts';
import { clientGone, sendText } from '../../server/http/respond.ts';
import { clientNetwork } from '../../server/limits/client-address.ts';
import type { Shedding } from '../../server/limits/load-shedder.ts';
import type { Slots } from '../../server/limits/load-shedding.ts';
import { countFailedAttempts, type Guesses } from '../../server/limits/rates.ts';
import type { Delivered, OpenBackendCall } from './backend-service.ts';
import { ACP_ERRORS, AcpError, type AcpErrorName, asAcpError, busy, retryAfter } from './error.ts';
import {
  bodyChecks,
  callerRequestIdOf,
  checkMediaType,
  checkVersion,
  idempotencyKeyOf,
  legibleKeyOf,
  readBody,
  routeOf,
} from './request.ts';

interface AcpAdapterParts {
  readonly mountPath: string;
  readonly settings: Pick<AcpSettings, 'clients' | 'backend' | 'acceptLineItemQuantity'>;
  /** Middleware that every call passes before anything of it is compared or read. */
  readonly entrance: readonly RequestHandler[];
  /** Counts wrong tokens. */
  readonly guesses: Guesses;
  readonly gate: {
    readonly accepting: () => boolean;
    /** Counts a piece of work until the result is called; a drain waits for it. */
    readonly begin: () => () => void;
  };
  /** Gives the reason why a call must be refused; undefined: none. */
  readonly shedding: Shedding;
  /** The slots of all calls, and those of this adapter's calls. */
  readonly slots: readonly Slots[];
  /** Holds calls while the backend restarts; `pass` resolves to false for one held in vain. */
  readonly fence: { up(): boolean; pass(): Promise<boolean> };
  readonly sessions: Pick<Sessions, 'access'>;
  readonly idempotency: ReturnType<typeof createIdempotency>;
  readonly openBackendCall: OpenBackendCall;
  /** Notes how far a call has come. */
  readonly entered: (step: 'admit' | 'validate' | 'forward' | 'conclude', res: Response) => void;
}

/**
 * The order of the lines in `serve` is the order in which a call is checked, and the first failure
 * is the answer (acp 13.1).
 */
export function acpAdapter(parts: AcpAdapterParts): RequestHandler {
  const { mountPath, settings, entrance, guesses, fence, sessions, idempotency, openBackendCall, entered } = parts;
  const clientOf = clientsByToken(settings.clients, guesses);
  const checkBody = bodyChecks(settings.acceptLineItemQuantity ? 'wire-quantity' : 'wire');

  async function serve(path: string, req: Request, res: Response): Promise<void> {
    const startedAt = performance.now();
    const { operation, sessionId } = routeOf(req.method, path);
    note(res, 'channel', 'acp');
    await pass(entrance, req, res);
    const clientId = clientOf(req);
    note(res, 'operation', operation);
    checkVersion(req);
    const keyed = operation === 'getCheckoutSession' ? undefined : { operation, key: idempotencyKeyOf(req) };
    const contentType = keyed === undefined ? undefined : checkMediaType(req);
    entered('admit', res);
    if (fence.up() && !(await fence.pass())) throw busy();
    const leave = admit(parts, res);
    try {
      const left = clientGone(res);
      const { bytes, value } = await readBody({ operation, contentType }, req, res);
      entered('validate', res);
      checkBody(operation, value);
      if (sessionId !== undefined) assertAccess(await sessions.access(clientId, sessionId));
      entered('forward', res);
      const call = openBackendCall({
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
 * Answers each error of a request below the mount with an Error document of ACP, never with the
 * error envelope of the gateway's own routes.
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

/**
 * Admits a call before a byte of its body is read, and before it leaves anything in the store (acp
 * 13.6). The call holds its slots until its connection is closed *and* its work has called the
 * result: an exchange with the backend goes on when the caller has left.
 * @throws AcpError service_unavailable
 */
function admit({ gate, shedding, slots }: Pick<AcpAdapterParts, 'gate' | 'shedding' | 'slots'>, res: Response) {
  if (!gate.accepting() || shedding() !== undefined) throw busy();
  const ends = [gate.begin(), ...slots.map((each) => each.takeFor(res)())];
  return () => {
    for (const end of ends) end();
  };
}

/** Passes middleware one after the other. Rejects with the refusal of the first that refuses. */
async function pass(middleware: readonly RequestHandler[], req: Request, res: Response): Promise<void> {
  for (const step of middleware)
    await new Promise<void>((resolve, reject) => {
      step(req, res, (refusal?: unknown) => (refusal === undefined ? resolve() : reject(refusal)));
    });
}

/** Resolves to whether the answer went out, once that is certain. */
function wentOut(res: Response): Promise<boolean> {
  return new Promise((resolve) => onceClosed(res, () => resolve(res.writableFinished)));
}

/** RFC 6750, 2.1, with exactly one space, and a token of at most 512 characters. */
const BEARER = /^Bearer ([!-~]{1,512})$/i;

/**
 * A client may have several tokens, so that one can follow another while calls are open. An address
 * with too many wrong tokens has to wait; a right token always passes, because clients and
 * attackers may share an address.
 * @throws AcpError unauthorized, rate_limited
 */
export function clientsByToken(clients: readonly AcpClient[], guesses: Guesses = {}): (req: IncomingMessage) => string {
  const { clientOf: addressOf = clientNetwork(0), wrongTries = countFailedAttempts(), onLimited } = guesses;
  const ownerOf = ownersOf(clients.flatMap(({ id, tokens }) => tokens.map((token) => ({ token, owner: id }))));
  return function clientOf(req) {
    const header = readHeader(req, 'authorization');
    const client = ownerOf(header.kind === 'single' ? BEARER.exec(header.value)?.[1] : undefined);
    if (client !== undefined) return client;
    // A call without a token is no guess.
    const waitS = header.kind === 'absent' ? undefined : wrongTries.note(addressOf(req));
    if (waitS !== undefined) {
      onLimited?.();
      throw new AcpError('rate_limited', { message: 'Too many wrong tokens.', headers: retryAfter(waitS) });
    }
    throw new AcpError('unauthorized', { headers: { 'www-authenticate': 'Bearer realm="acp"' } });
  };
}

const JSON_HEAD = { 'content-type': 'application/json' } as const;

/**
 * Another client's session gets the same error as a session that the backend does not have (acp 8).
 * @throws AcpError checkout_session_not_found, service_unavailable
 */
function assertAccess(access: Access): void {
  if (access.kind === 'absent') throw new AcpError('checkout_session_not_found');
  if (access.kind === 'unavailable') throw busy({ cause: access.cause });
}

/**
 * The answer of a call, however it ended (acp 12.4).
 * @throws AcpError for every end without an answer
 */
function deliveredOf(end: KeyedEnd | AttemptEnd): Delivered {
  switch (end.kind) {
    case 'answered':
      return { answer: end.answer, from: end.from };
    case 'answer':
      return { answer: end.answer, from: 'backend' };
    case 'failed':
    case 'not_executed':
    case 'unknown':
      throw end.failure;
    case 'in_flight':
      throw new AcpError('idempotency_in_flight', { headers: retryAfter(end.retryAfterS) });
    case 'session_busy':
      throw new AcpError('checkout_session_conflict', {
        message: 'Another request on this checkout session is still running: repeat yours after Retry-After.',
        headers: retryAfter(end.retryAfterS),
      });
    case 'session_unknown':
      throw new AcpError('checkout_session_conflict', {
        message:
          'How an earlier request on this checkout session ended is not known, and the session cannot be read now: repeat yours after Retry-After.',
        headers: retryAfter(end.retryAfterS),
      });
    case 'conflict':
      throw new AcpError('idempotency_conflict');
    case 'foreign':
      throw new AcpError('processing_error', { cause: new Error("the backend opened another client's session") });
    case 'unavailable':
      throw busy({ cause: end.cause });
  }
}

/** Sends an answer in its own bytes. No header of the backend goes along. */
function sendAnswer(res: Response, { answer, from }: Delivered): void {
  // To a connection that is gone nothing is delivered.
  if (!res.destroyed) noteOutcome(res, outcomeOf(answer, from));
  if (from === 'kept') res.setHeader('idempotent-replayed', 'true');
  send(res, answer.status, answer.body);
}

/** Sends the Error document. Behind a head it breaks the connection instead. */
function sendFailure(res: Response, error: AcpError): void {
  noteOutcome(res, outcomeOfError(error.code));
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  send(res, error.status, JSON.stringify(error.document));
}

/** Adds the headers of every answer (acp 2.2): the caller's request id, and the key of a POST. */
function send(res: Response, status: number, body: string | Uint8Array): void {
  if (res.destroyed || res.headersSent) return;
  const { req } = res;
  const requestId = callerRequestIdOf(req);
  const key = req.method === 'POST' ? legibleKeyOf(req) : undefined;
  if (requestId !== undefined) res.setHeader('request-id', requestId);
  if (key !== undefined) res.setHeader('idempotency-key', key);
  // Sessions show who buys what.
  res.setHeader('cache-control', 'no-store');
  sendText(res, status, JSON_HEAD, body);
}

function outcomeOf({ status, body }: FinalAnswer, from: Delivered['from']): Outcome {
  if (status < 400) return from === 'kept' ? 'replayed' : 'delivered';
  // The body of a refusal is one of our own Error documents.
  const document = JSON.parse(Buffer.from(body).toString()) as Json;
  return isObject(document) && isErrorName(document['code']) ? outcomeOfError(document['code']) : 'processing_error';
}

/** The outcome of a failure in log and metrics. */
function outcomeOfError(code: AcpErrorName): Outcome {
  return code === 'internal_error' ? 'INTERNAL_ERROR' : code;
}

function isErrorName(name: unknown): name is AcpErrorName {
  return typeof name === 'string' && Object.hasOwn(ACP_ERRORS, name);
}
