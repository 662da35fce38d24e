/** A proxy that reads the body, made of Express and http-proxy-middleware, as contestants. */

import express from 'express';
import { createProxyMiddleware, fixRequestBody } from 'http-proxy-middleware';
import { pinoHttp } from 'pino-http';
import { type Contestant, PEER_QUESTION, textQuestion } from '../contestant.ts';
import { exact, peerProgram, servePeer } from '../serve-peer.ts';

/** `express.json` takes 100 KB unless it is told otherwise. */
const BODY_LIMIT = '1mb';
/** The exact programs of the recipe. */
export const RECIPE = `${exact('express', 'http-proxy-middleware', 'pino-http')}, express.json and fixRequestBody`;

const SHARED = { readyPath: '/', program: peerProgram(import.meta.filename) } as const;

/** The usual proxy that reads the body: body parser, proxy, the body serialized again, a log. */
export const hpmRecipe: Contestant = {
  ...SHARED,
  id: 'recipe',
  suite: 'free',
  title: RECIPE,
  question: PEER_QUESTION,
};

/** The same process on one connection. */
export const recipeAlone: Contestant = {
  ...hpmRecipe,
  id: 'recipe-alone',
  title: `${RECIPE}, one connection`,
  connections: 1,
  process: 'recipe',
};

/** The same with a long body. */
export const recipeBody: Contestant = {
  ...SHARED,
  id: 'recipe-body-64k',
  suite: 'bodies',
  title: `${RECIPE}, 64 KB`,
  question: textQuestion('/api/resources/text/invoke'),
};

if (import.meta.main) {
  servePeer((target) =>
    express()
      .use(pinoHttp())
      .use(express.json({ limit: BODY_LIMIT }))
      .use(createProxyMiddleware({ target, changeOrigin: true, on: { proxyReq: fixRequestBody } })),
  );
}
