/** A listener like the gateway's with only the middleware of a test behind it. */

import { promisify } from 'node:util';
import type { RequestHandler } from 'express';
import { plainExpress } from '../../../src/app/plain-express.ts';
import { errorHandler } from '../../../src/pipeline/middleware/error-handler.ts';
import { identify } from '../../../src/server/http/access-record.ts';
import { checkFraming } from '../../../src/server/http/request.ts';
import { sendJson } from '../../../src/server/http/respond.ts';
import { createListener, type ListenerParts } from '../../../src/server/listener/listen.ts';

export interface BareListener {
  readonly url: string;
  /** Requests that passed all middleware. */
  readonly served: readonly string[];
  /** Connections that are open now. */
  connections(): Promise<number>;
  close(): void;
}

/** Opens one on loopback. `middleware` follows `checkFraming`; what passes it is answered 200. */
export async function openBareListener(
  middleware: readonly RequestHandler[],
  bounds: Omit<ListenerParts, 'app' | 'onRefused'> & Partial<Pick<ListenerParts, 'onRefused'>> = {},
): Promise<BareListener> {
  const served: string[] = [];
  const app = plainExpress();
  app.use(identify(), checkFraming(), ...middleware);
  app.use(function serve(req, res) {
    served.push(`${req.method} ${req.url}`);
    sendJson(res, 200, '{}');
  });
  app.use(errorHandler(() => undefined));
  const listener = createListener({ app, onRefused: () => undefined, ...bounds });
  const { port } = await listener.listen('127.0.0.1', 0);
  return {
    url: `http://127.0.0.1:${port}`,
    served,
    connections: () => promisify(listener.server.getConnections).call(listener.server) as Promise<number>,
    close: () => listener.destroy(),
  };
}
