import { type RequestHandler, Router } from 'express';
import { GatewayError } from '../../errors.ts';
import { CALL_ID } from '../../events/call-id.ts';
import { EVENT_TYPES, type EventFeed } from '../../events/event.ts';
import { EVENT_ID } from '../../events/position.ts';
import { RECEIPT_ID, type ReceiptBook } from '../../receipts/receipt.ts';
import { allowOnly } from '../../server/http/methods.ts';
import { sendJson } from '../../server/http/respond.ts';
import type { Guesses } from '../../server/rate-limit/failed-attempts.ts';
import { StoreError } from '../../store/port/store.ts';
import { authenticate } from './authenticate.ts';
import { limitOf, matching, oneOf, queryOf } from './query.ts';

/** Any text that can be an id of ours or of a caller; longer or stranger filters cannot match anything. */
const ID_FILTER = /^[A-Za-z0-9._:-]{1,128}$/;

/** What operators read. */
interface OperatorSources {
  readonly feed: EventFeed;
  readonly receipts: ReceiptBook;
  readonly stream: RequestHandler;
  /** Writes what waits for the store, so that an operator finds whatever was answered here before he asked. Never throws. */
  readonly written: () => Promise<void>;
}

/** `/api/receipts`, `/api/events` and its stream (CONTRACT 6): served only to who brings an operator token. */
export function operatorRoutes(
  adminTokens: readonly string[],
  { feed, receipts, stream, written }: OperatorSources,
  guesses: Guesses = {},
): Router {
  const router = Router({ strict: true, caseSensitive: true });
  const paths = ['/api/receipts', '/api/events', '/api/events/stream'];
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
  router.get('/api/events/stream', stream);
  router.all(paths, allowOnly('GET', 'HEAD'));
  return router;
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
