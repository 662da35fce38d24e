import { createRpc, type Rpc } from '../../../src/payments/x402/chain/rpc.ts';
import { type HttpServer, serveHttp } from '../../support/http-server.ts';

/**
 * `pass`: the call is unchanged; `lose`: the node gets it and the answer breaks off; `reset`: the
 * connection breaks off before; `fail`: no node behind the balancer; `empty`: an empty answer;
 * `unfunded`: the node gets it and answers that its sender cannot pay the gas; `limit`, `busy`,
 * `broken`: readable refusals of a node that has not worked on it.
 */
export type Fault = 'pass' | 'lose' | 'reset' | 'fail' | 'empty' | 'unfunded' | keyof typeof REFUSALS;

const REFUSALS = {
  limit: { status: 429, error: { code: -32_005, message: 'rate limited' } },
  busy: { status: 200, error: { code: -32_016, message: 'over rate limit' } },
  broken: { status: 200, error: { code: -32_603, message: 'internal error' } },
} as const;

const UNFUNDED = { code: -32_000, message: 'insufficient funds for gas * price + value' };

/** Runs `use` with a connection through a chain node with faults. */
export async function throughFaultyNode<T>(
  upstream: string,
  fault: (method: string) => Fault,
  use: (rpc: Rpc) => Promise<T>,
): Promise<T> {
  const node = await startFaultyNode(upstream, fault);
  const rpc = createRpc(node.url);
  try {
    return await use(rpc);
  } finally {
    await rpc.close();
    await node.stop();
  }
}

/** A chain node with faults, between its callers and the real one. */
export async function startFaultyNode(upstream: string, fault: (method: string) => Fault): Promise<HttpServer> {
  return serveHttp(async ({ response, body: bytes }) => {
    const body = bytes.toString('utf8');
    const { method, id } = JSON.parse(body) as { readonly method: string; readonly id: number };
    const headers = { 'content-type': 'application/json' };
    const chosen = fault(method);
    if (chosen === 'reset') response.socket?.resetAndDestroy();
    else if (chosen === 'limit' || chosen === 'busy' || chosen === 'broken') {
      const { status, error } = REFUSALS[chosen];
      response.writeHead(status, headers).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    } else if (chosen === 'fail') response.writeHead(503).end('<html>no upstream</html>');
    else if (chosen === 'empty')
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result: [] }));
    else {
      const answer = await (await fetch(upstream, { method: 'POST', headers, body })).text();
      if (chosen === 'lose') response.socket?.resetAndDestroy();
      else if (chosen === 'unfunded')
        response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, error: UNFUNDED }));
      else response.writeHead(200, headers).end(answer);
    }
  });
}
