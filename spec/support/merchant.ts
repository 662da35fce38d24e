import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { MERCHANT_ROUTES, type MerchantRequest, type MerchantStage, NOT_FOUND } from './merchant-routes.ts';

export { ARCHIVE, type MerchantRequest } from './merchant-routes.ts';

/** A sample merchant that keeps a record of every request it got, for assertions. */
export interface Merchant {
  readonly url: string;
  /** In order of arrival, complete with their bodies; the newest 10,000. */
  readonly requests: readonly MerchantRequest[];
  /** How often the operation was run for this key, whatever the answer was. */
  executions(idempotencyKey: string): number;
  /**
   * Resolves with the next request whose path starts with `pathPrefix`, as soon as its body has
   * arrived.
   */
  nextRequest(pathPrefix: string): Promise<MerchantRequest>;
  /** Lets every request that waits on `/held` go on, and those to come until the next `hold()`. */
  release(): void;
  hold(): void;
  /** Forgets the record, not what is held. */
  forget(): void;
  /** Ends also the connections whose answers are still running. */
  stop(): Promise<void>;
}

/** Requests kept in memory; older ones are dropped so that a long run cannot fill it. */
const MAX_RECORDED = 10_000;

/** Starts the sample merchant on 127.0.0.1; `port` 0 takes a free one. */
export async function startMerchant(options: { readonly port?: number } = {}): Promise<Merchant> {
  const requests: MerchantRequest[] = [];
  const executions = new Map<string, number>();
  const arrivals = new EventEmitter();
  arrivals.setMaxListeners(0);
  const gate = createGate();
  const stage: MerchantStage = {
    failuresLeft: new Map(),
    released: gate.released,
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const recorded = await record(request);
    requests.push(recorded);
    if (requests.length > MAX_RECORDED) requests.shift();
    const key = recorded.idempotencyKey;
    if (key !== undefined) executions.set(key, (executions.get(key) ?? 0) + 1);
    arrivals.emit('request', recorded);
    const { pathname } = new URL(recorded.url, 'http://merchant');
    const route = MERCHANT_ROUTES.find(({ method, pattern }) => method === recorded.method && pattern.test(pathname));
    await (route ?? NOT_FOUND).answer(recorded, response, stage);
  };
  const server = createServer((request, response) => {
    // Only a caller that left while its answer was being made ends here.
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    executions: (key) => executions.get(key) ?? 0,
    nextRequest: (pathPrefix) =>
      new Promise((resolve) => {
        const look = (request: MerchantRequest) => {
          if (!request.url.startsWith(pathPrefix)) return;
          arrivals.off('request', look);
          resolve(request);
        };
        arrivals.on('request', look);
      }),
    release: gate.open,
    hold: gate.close,
    forget: () => {
      requests.length = 0;
      executions.clear();
    },
    stop: async () => {
      gate.open();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function record(request: IncomingMessage): Promise<MerchantRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const key = request.headers['idempotency-key'];
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    rawHeaders: request.rawHeaders,
    headers: request.headers,
    body: Buffer.concat(chunks),
    idempotencyKey: typeof key === 'string' ? key : undefined,
    at: Date.now(),
  };
}

interface Gate {
  released(): Promise<void>;
  open(): void;
  close(): void;
}

/** Closed at first. */
function createGate(): Gate {
  let opened = Promise.withResolvers<void>();
  let isOpen = false;
  return {
    released: () => opened.promise,
    open: () => {
      isOpen = true;
      opened.resolve();
    },
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      opened = Promise.withResolvers<void>();
    },
  };
}
