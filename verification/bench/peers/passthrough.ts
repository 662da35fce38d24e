/** What passes to the backend without being sold, beside proxies that do only that. */

import http from 'node:http';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { pino } from 'pino';
import { pinoHttp } from 'pino-http';
import { type Contestant, FROM_BACKEND, plainQuestion } from '../contestant.ts';
import { peerProgram, servePeer } from '../serve-peer.ts';
import { gatewayProgram, SOLD_OVER_HTTP } from './gateway.ts';

/** No path of the gateway, and none of the priced operation. */
const QUESTION = plainQuestion('/shop/orders/2026/11', 200, FROM_BACKEND);

/** A request that passes, while an operation with a price is guarded; the log is on. */
export const gatewayPassed: Contestant = {
  id: 'passed',
  suite: 'passthrough',
  title: 'gateway, passthrough',
  question: QUESTION,
  readyPath: '/ready',
  own: true,
  program: gatewayProgram('redis', { ...SOLD_OVER_HTTP, passthrough: { enabled: true } }),
};

/** The usual proxy that streams both ways. */
export const hpmLogged: Contestant = {
  id: 'hpm-logged',
  suite: 'passthrough',
  title: 'Express + hpm, streamed, keep-alive, pino-http with the same fields',
  question: QUESTION,
  readyPath: '/',
  program: peerProgram(import.meta.filename),
};

/** The fields of the gateway's own line, written as it writes them. */
function sameLog() {
  const out = pino.destination({ dest: 1, sync: false, minLength: 4_096, periodicFlush: 500 });
  return pinoHttp({
    logger: pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, out),
    wrapSerializers: false,
    quietResLogger: true,
    serializers: { req: () => undefined },
    customAttributeKeys: { responseTime: 'ms' },
    customSuccessObject: ({ id, method, url }, { statusCode }, { ms }: { ms: number }) => {
      const [path] = (url ?? '').split('?');
      return { requestId: id, callId: id, method, path, status: statusCode, ms };
    },
  });
}

if (import.meta.main) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  servePeer((target) => express().use(sameLog()).use(createProxyMiddleware({ target, agent })));
}
