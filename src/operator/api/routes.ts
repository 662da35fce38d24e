/** The operators' routes for receipts, events and the event stream, behind the operator token. */

import { type RequestHandler, Router } from 'express';
import { GatewayError } from '../../errors.ts';
import { CALL_ID, EVENT_TYPES, type EventFeed } from '../../events/event.ts';
import { EVENT_ID } from '../../events/page.ts';
import { RECEIPT_ID, type ReceiptBook } from '../../receipts/receipt.ts';
import { allowOnly, ownersOf, readHeader } from '../../server/http/request.ts';
import { sendJson } from '../../server/http/respond.ts';
import { clientNetwork } from '../../server/limits/client-address.ts';
import { countFailedAttempts, type Guesses } from '../../server/limits/rates.ts';
import { StoreError } from '../../store/port/store-error.ts';

/** The longest operator token has 512 characters. */
const BEARER = /^Bearer +([!-~]{1,512}) *$/i;

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 500;
/** Every id of the gateway or of a caller matches it; other filters cannot find anything. */
const ID_FILTER = /^[A-Za-z0-9._:-]{1,128}$/;

interface OperatorSources {
  readonly feed: EventFeed;
  readonly receipts: ReceiptBook;
  /** Work that was not paid for, the latest first. */
  readonly unpaid: (limit: number) => Promise<readonly object[]>;
  readonly stream: RequestHandler;
  /**
   * Writes the queues to the store, so that a page shows every call that this process has answered
   * before. Never throws.
   */
  readonly written: () => Promise<void>;
}

/** Serves `/api/receipts`, the list of unpaid work, `/api/events` and its stream (contract 6). */
export function operatorRoutes(
  adminTokens: readonly string[],
  { feed, receipts, unpaid, stream, written }: OperatorSources,
  guesses: Guesses = {},
): Router {
  const router = Router({ strict: true, caseSensitive: true });
  const paths = ['/api/receipts', '/api/receipts/unpaid', '/api/events', '/api/events/stream'];
  router.all(paths, authenticate(adminTokens, guesses));
  router.get(
    '/api/events',
    answer(async (query) => {
      const { limit, ...filters } = common(query, EVENT_ID);
      const type = oneOf(query, 'type', EVENT_TYPES);
      await written();
      return feed.page({ limit, ...filters, ...(type === undefined ? {} : { type }) });
    }),
  );
  router.get(
    '/api/receipts',
    answer(async (query) => {
      const delivered = oneOf(query, 'delivered', ['true', 'false']);
      const uncertain = oneOf(query, 'uncertain', ['payment', 'delivery']);
      const filters = common(query, RECEIPT_ID);
      await written();
      return receipts.page({
        ...filters,
        ...(delivered === undefined ? {} : { delivered: delivered === 'true' }),
        ...(uncertain === undefined ? {} : { uncertain }),
      });
    }),
  );
  router.get(
    '/api/receipts/unpaid',
    answer(async (query) => ({ unpaid: await unpaid(limitOf(query)) })),
  );
  router.get('/api/events/stream', stream);
  router.all(paths, allowOnly('GET', 'HEAD'));
  return router;
}

/**
 * Lets operators pass (specification 5). Tokens are compared as digests, in constant time, with
 * every configured one; never taken from a query parameter. Without a configured token the routes
 * answer as unknown ones. A client with too many wrong tokens must wait; a right one always passes,
 * because behind an ingress operators and guessers may share an address.
 */
export function authenticate(adminTokens: readonly string[], guesses: Guesses = {}): RequestHandler {
  const { clientOf = clientNetwork(0), wrongTries = countFailedAttempts(), onLimited = () => undefined } = guesses;
  const isOperator = ownersOf(adminTokens.map((token) => ({ token, owner: true })));
  return function authenticateOperator(req, _res, next) {
    if (adminTokens.length === 0) {
      next('router');
      return;
    }
    const header = readHeader(req, 'authorization');
    if (isOperator(header.kind === 'single' ? BEARER.exec(header.value)?.[1] : undefined)) {
      next();
      return;
    }
    // A request without a token is no guess.
    const waitS = header.kind === 'absent' ? undefined : wrongTries.note(clientOf(req));
    if (waitS === undefined) throw new GatewayError('UNAUTHORIZED', { headers: { 'www-authenticate': 'Bearer' } });
    onLimited();
    throw new GatewayError('RATE_LIMITED', {
      message: 'Too many wrong operator tokens.',
      headers: { 'retry-after': String(waitS) },
    });
  };
}

function answer(page: (query: URLSearchParams) => Promise<object>): RequestHandler {
  return async function operatorAnswer(req, res) {
    try {
      const body = JSON.stringify(await page(queryOf(req.url)));
      res.setHeader('cache-control', 'no-store');
      sendJson(res, 200, body);
    } catch (thrown) {
      throw thrown instanceof StoreError
        ? new GatewayError('STORAGE_ERROR', { message: 'The store is not available.', cause: thrown })
        : thrown;
    }
  };
}

function common(query: URLSearchParams, cursorPattern: RegExp) {
  const cursor = matching(query, 'cursor', cursorPattern, 'a nextCursor of an earlier answer');
  const requestId = matching(query, 'requestId', ID_FILTER, 'a request id');
  const callId = matching(query, 'callId', CALL_ID, 'a call id, as events and receipts have it');
  const resourceId = matching(query, 'resourceId', ID_FILTER, 'a resource id');
  return {
    limit: limitOf(query),
    ...(cursor === undefined ? {} : { cursor }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(callId === undefined ? {} : { callId }),
    ...(resourceId === undefined ? {} : { resourceId }),
  };
}

/** The query of a route. Express does not parse it: `query parser` is off. */
function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1));
}

/** `limit` (contract 6): 1 to 500, default 50; more is clamped, other values are refused. */
function limitOf(query: URLSearchParams): number {
  const text = single(query, 'limit');
  if (text === undefined) return DEFAULT_LIMIT;
  if (!/^[0-9]+$/.test(text) || Number(text) === 0) throw badParameter('limit', 'an integer from 1 to 500');
  return Math.min(Number(text), MAX_LIMIT);
}

/** An optional parameter that must match a pattern. */
function matching(query: URLSearchParams, name: string, pattern: RegExp, meaning: string): string | undefined {
  const value = single(query, name);
  if (value !== undefined && !pattern.test(value)) throw badParameter(name, meaning);
  return value;
}

/** An optional parameter that must be a word of a closed list. */
function oneOf<Word extends string>(query: URLSearchParams, name: string, words: readonly Word[]): Word | undefined {
  const value = single(query, name);
  const word = words.find((known) => known === value);
  if (value !== undefined && word === undefined) throw badParameter(name, `one of ${words.join(', ')}`);
  return word;
}

/** A parameter that is given twice is refused: either value alone would be another query. */
function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name);
  if (more.length > 0) throw badParameter(name, 'given once');
  return value;
}

function badParameter(field: string, meaning: string): GatewayError {
  return new GatewayError('INPUT_INVALID', {
    message: `The query parameter ${field} must be ${meaning}.`,
    details: { field },
  });
}
