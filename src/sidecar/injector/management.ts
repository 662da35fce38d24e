/** The second listener of an injector, without TLS: probes and metrics. */

import http from 'node:http';
import { listenOn } from '../../server/http/listen-on.ts';
import type { InjectorMetrics } from './metrics.ts';

const REQUEST_MS = 2_000;
const MAX_CONNECTIONS = 64;
const TEXT = 'text/plain; charset=utf-8';

interface ManagementParts {
  readonly metrics: Pick<InjectorMetrics, 'contentType' | 'text'>;
  /** Why the injector should get no reviews now; undefined: it should. */
  readonly notReady: () => string | undefined;
}

/** `/healthz`: the process answers. `/ready`: it can be asked for reviews. `/metrics`. */
export function createManagementServer({ metrics, notReady }: ManagementParts) {
  const pages: Readonly<Record<string, () => Page | Promise<Page>>> = {
    '/healthz': () => [200, TEXT, 'ok\n'],
    '/ready': () => {
      const reason = notReady();
      return reason === undefined ? [200, TEXT, 'ready\n'] : [503, TEXT, `${reason}\n`];
    },
    '/metrics': async () => [200, metrics.contentType, await metrics.text()],
  };
  const server = http.createServer(
    { headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, connectionsCheckingInterval: REQUEST_MS / 2 },
    async (req, res) => {
      const path = (req.url ?? '/').split('?', 1)[0] ?? '/';
      const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
      const isRead = req.method === 'GET' || req.method === 'HEAD';
      const unknown: Page = [404, TEXT, `known are ${Object.keys(pages).join(', ')}\n`];
      const [status, type, text] = page === undefined ? unknown : isRead ? await page() : NOT_READ;
      if (status === 405) res.setHeader('allow', 'GET, HEAD');
      res.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      res.end(req.method === 'HEAD' ? undefined : text);
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  return {
    listen: (host: string | undefined, port: number) =>
      listenOn(server, { ...(host === undefined ? {} : { host }), port }),
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

type Page = readonly [status: number, type: string, text: string];

const NOT_READ: Page = [405, TEXT, 'GET and HEAD only\n'];
