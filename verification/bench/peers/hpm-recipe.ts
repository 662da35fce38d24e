/** A proxy that reads the body, made of Express and http-proxy-middleware, as a contestant. */

import express from 'express';
import { createProxyMiddleware, fixRequestBody } from 'http-proxy-middleware';
import { pinoHttp } from 'pino-http';
import { type Contestant, PEER_QUESTION } from '../contestant.ts';
import { peerProgram, servePeer } from '../serve-peer.ts';

/** The usual proxy that reads the body: body parser, proxy, the body serialized again, a log. */
export const hpmRecipe: Contestant = {
  id: 'hpm-recipe',
  suite: 'http',
  title: 'express.json + hpm + fixRequestBody + pino-http',
  question: PEER_QUESTION,
  readyPath: '/',
  program: peerProgram(import.meta.filename),
};

if (import.meta.main) {
  servePeer((target) =>
    express()
      .use(pinoHttp())
      .use(express.json())
      .use(createProxyMiddleware({ target, changeOrigin: true, on: { proxyReq: fixRequestBody } })),
  );
}
