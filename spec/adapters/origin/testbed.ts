/** The adapter of sales in place behind its routes, without the pipeline. */

import { type RequestHandler, Router } from 'express';
import { originAdapter } from '../../../src/adapters/origin/adapter.ts';
import { openRoutes } from '../../../src/app/open-routes.ts';
import { noRoute } from '../../../src/app/plain-express.ts';
import { onlyInPlace, takeRoute } from '../../../src/passthrough/route.ts';
import { compileOffers } from '../../../src/payments/x402/wire/offers.ts';
import { currentCall, type ReceivedCall } from '../../../src/pipeline/call.ts';
import { compileCatalogue } from '../../../src/resources/catalogue.ts';
import { sendJson } from '../../../src/server/http/respond.ts';
import { type Changes, load } from '../../config/document/document.ts';
import { tokensUnder } from '../../payments/settlement/tokens.ts';
import { openBareListener } from '../../server/http/bare-listener.ts';

/** What runs, and the calls that the adapter received. */
export interface OriginTestbed {
  readonly url: string;
  readonly calls: readonly ReceivedCall[];
  /** The call of the request that is sent, when there is one. */
  received(path: string, init?: RequestInit): Promise<{ readonly status: number; readonly call?: ReceivedCall }>;
  close(): void;
}

/** Opens a listener. `after`: what gets a received call; it answers 200 unless given. */
export async function openOrigin(changes: Changes, after: RequestHandler = answered): Promise<OriginTestbed> {
  const config = load(changes);
  const catalogue = compileCatalogue(config);
  const routeOf = openRoutes(config, catalogue);
  if (routeOf === undefined) throw new Error('nothing is sold in place');
  const calls: ReceivedCall[] = [];
  const { originHeaders } = config.backend;
  const offers = compileOffers(config, tokensUnder());
  const adapter = originAdapter({ catalogue, offers, originHeaders, publicBaseUrl: config.merchant.publicBaseUrl });
  const note: RequestHandler = (_req, res, next) => {
    calls.push(currentCall(res) as ReceivedCall);
    next();
  };
  const sale = Router().use([adapter, note, after]);
  const listener = await openBareListener([takeRoute(routeOf, noRoute), onlyInPlace(sale)]);
  return {
    url: listener.url,
    calls,
    async received(path, init) {
      const known = calls.length;
      const answer = await fetch(`${listener.url}${path}`, init);
      await answer.arrayBuffer();
      const call = calls[known];
      return { status: answer.status, ...(call === undefined ? {} : { call }) };
    },
    close: () => listener.close(),
  };
}

const answered: RequestHandler = (_req, res) => sendJson(res, 200, '{}');
