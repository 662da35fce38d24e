/** What passes to the backend without being sold, beside proxies that do only that. */

import http from 'node:http';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { pino } from 'pino';
import { pinoHttp } from 'pino-http';
import { Client } from 'undici';
import { type Contestant, FROM_BACKEND, plainQuestion } from '../contestant.ts';
import { peerProgram, servePeer } from '../serve-peer.ts';
import { gatewayProgram, SOLD_OVER_HTTP } from './gateway.ts';

/** No path of the gateway, and none of the priced operation. */
const QUESTION = plainQuestion('/shop/orders/2026/11', 200, FROM_BACKEND);
/** Names the peer that a process of this file is. */
const PEER = 'BENCH_PROXY';

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

/** Proxies that stream both ways: the usual one, and one without Express and library. */
export const proxies: readonly Contestant[] = [
  proxy('hpm-logged', 'Express + hpm, streamed, keep-alive, pino-http with the same fields'),
  proxy('hpm-plain', 'Express + hpm, streamed, keep-alive, no log'),
  proxy('undici-piped', 'bare node + undici, piped, no log'),
];

function proxy(id: string, title: string): Contestant {
  return {
    id,
    suite: 'passthrough',
    title,
    question: QUESTION,
    readyPath: '/',
    program: peerProgram(import.meta.filename, { [PEER]: id }),
  };
}

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

/** Streams each request through an undici client that no other request uses meanwhile. */
function piped(target: string): http.RequestListener {
  const clients: Client[] = [];
  return (request, response) => {
    const client = clients.pop() ?? new Client(target, { pipelining: 1 });
    const { method = 'GET', url: path = '/', headers } = request;
    const { connection: _, ...passed } = headers;
    const done = (): void => void clients.push(client);
    client
      .stream({ method: method as 'GET', path, headers: passed, body: request, opaque: response }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers as http.OutgoingHttpHeaders);
        return response;
      })
      .then(done, () => response.destroy());
  };
}

if (import.meta.main) {
  const peer = process.env[PEER];
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  if (peer === 'undici-piped') {
    const { PORT, BACKEND_URL = '' } = process.env;
    http.createServer(piped(BACKEND_URL)).listen(Number(PORT), '127.0.0.1');
    process.once('SIGTERM', () => process.exit(0));
  } else
    servePeer((target) => {
      const app = express();
      if (peer === 'hpm-logged') app.use(sameLog());
      return app.use(createProxyMiddleware({ target, agent }));
    });
}
