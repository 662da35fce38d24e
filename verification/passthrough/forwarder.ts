/**
 * The least gateway: sends each request where the decision of `src/passthrough` says, and forwards
 * what passes with its target as it came.
 */

import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Route } from '../../src/passthrough/route.ts';
import type { Entrance, RouteOf } from './gateway.ts';
import { closed } from './merchant.ts';

/** Listens in front of a merchant. */
export async function openForwarder(merchantPort: number, routeOf: RouteOf): Promise<Entrance> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    const route = routeOf(req);
    if (route.kind === 'pass') forward(req, res, { port: merchantPort, agent });
    else refuse(req, res, route);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      await closed(server);
      agent.destroy();
    },
  };
}

/** A sale in place asks for payment here: nothing of the table pays. */
function refuse(req: IncomingMessage, res: ServerResponse, route: Exclude<Route, { kind: 'pass' }>): void {
  const error = route.kind === 'refused' ? route.error : undefined;
  res.statusCode = error?.status ?? (route.kind === 'in_place' ? 402 : 404);
  req.resume();
  res.end();
}

function forward(
  req: IncomingMessage,
  res: ServerResponse,
  to: { readonly port: number; readonly agent: Agent },
): void {
  const headers = passedHeaders(req.headers);
  const sent = request({ host: '127.0.0.1', ...to, method: req.method, path: req.url, headers }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(res);
  });
  sent.on('error', () => res.destroy());
  req.pipe(sent);
}

/** Hop-by-hop headers, and those that some stacks take the method or the path from, stay here. */
function passedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !STRIPPED.test(name.replaceAll('_', '-')));
  return Object.fromEntries(kept);
}

const STRIPPED = /^(?:connection|expect|x-original-.*|x-rewrite-.*|x-http-method.*|x-method-override|x-forwarded-.*)$/;
