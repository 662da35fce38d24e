/** Answers the requests of API servers: bounds the body, reads the review and writes the answer. */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { MalformedReview } from './admission-request.ts';

/** The path of the webhook configuration. API servers add `?timeout=5s`. */
const REVIEW_PATH = '/mutate';
/** Longest body, bytes: a pod may be as large as the store of the API server allows. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;
/** Bodies that are held at a time, bytes; a usual pod has less than 20 kB. */
const MAX_HELD_BYTES = 8 * 1024 * 1024;
/** How long the rest of a body that was refused is thrown away, milliseconds. */
const DISCARD_MS = 1_000;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/** The reasons of `metav1.Status`, by HTTP status. */
const REASONS = {
  400: 'BadRequest',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  408: 'Timeout',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  500: 'InternalError',
  503: 'ServiceUnavailable',
} as const;
export type RefusalStatus = keyof typeof REASONS;

interface HandlerParts {
  /** Answers the bytes of a review. @throws MalformedReview */
  readonly answer: (body: Buffer) => string;
  /** Why this client may not call; undefined: it may. */
  readonly refuseClient: (req: IncomingMessage) => string | undefined;
  /** Whether connections end with their answer. */
  readonly closing: () => boolean;
  /** A request got no answer of admission. */
  readonly onRefused: RefusalListener;
}

/** `fault`: what was thrown, where it is a bug. */
export type RefusalListener = (status: RefusalStatus, message: string, fault?: unknown) => void;

/** A refusal as API servers read it: they show the message to the user who creates the pod. */
export function refusalText(status: RefusalStatus, message: string): string {
  const reason = REASONS[status];
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code: status,
  });
}

export function reviewHandler({ answer, refuseClient, closing, onRefused }: HandlerParts): RequestListener {
  let held = 0;
  return function handleReview(req, res) {
    if (closing()) res.setHeader('connection', 'close');
    const refuse: RefusalListener = (status, message, fault) => {
      onRefused(status, message, fault);
      writeRefusal(req, res, status, message);
    };
    const stranger = refuseClient(req);
    if (stranger !== undefined) {
      refuse(403, stranger);
      return;
    }
    const refusal = refusalOfHead(req, res);
    if (refusal !== undefined) {
      refuse(...refusal);
      return;
    }

    const chunks: Buffer[] = [];
    let length = 0;
    const release = (): void => {
      held -= length;
      length = 0;
      chunks.length = 0;
      req.off('data', take);
      req.off('end', conclude);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      held += chunk.length;
      chunks.push(chunk);
      if (length <= MAX_BODY_BYTES && held <= MAX_HELD_BYTES) return;
      const isTooLong = length > MAX_BODY_BYTES;
      release();
      if (isTooLong) refuse(413, TOO_LONG);
      else refuse(503, 'Too many reviews at a time: the memory for their bodies is used up.');
    };
    const conclude = (): void => {
      const body = Buffer.concat(chunks, length);
      release();
      try {
        send(res, 200, answer(body));
      } catch (error) {
        if (error instanceof MalformedReview) refuse(400, error.message);
        else refuse(500, 'The injector failed; its log says why.', error);
      }
    };
    req.on('data', take);
    req.on('end', conclude);
    req.once('close', release);
  };
}

const TOO_LONG = `The body is longer than ${MAX_BODY_BYTES} bytes; no pod is.`;

/** What can be refused before the body is read. */
function refusalOfHead({ url = '/', method, headers }: IncomingMessage, res: ServerResponse): Refusal | undefined {
  if (url.split('?', 1)[0] !== REVIEW_PATH) return [404, `Reviews are answered at ${REVIEW_PATH} only.`];
  if (method !== 'POST') {
    res.setHeader('allow', 'POST');
    return [405, `Reviews are sent to ${REVIEW_PATH} with POST.`];
  }
  if (!JSON_TYPE.test(headers['content-type'] ?? '') || headers['content-encoding'] !== undefined)
    return [415, 'The body must be application/json without content encoding.'];
  if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) return [413, TOO_LONG];
  return undefined;
}

type Refusal = readonly [status: RefusalStatus, message: string];

function send(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}

/**
 * Writes a refusal. A body that is still on its way is thrown away for a while first: a connection
 * that is closed under a writing client takes the answer with it.
 */
function writeRefusal(req: IncomingMessage, res: ServerResponse, status: RefusalStatus, message: string): void {
  const text = refusalText(status, message);
  if (req.complete) {
    send(res, status, text);
    return;
  }
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  // The whole answer is out with it; its end waits.
  res.write(text);
  const end = (): void => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, DISCARD_MS).unref();
  req.once('end', end).once('close', end).resume();
}
