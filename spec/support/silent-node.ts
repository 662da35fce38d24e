import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * How a chain node lies by silence: `honest` not at all; `stuck` it shows the chain as it was when
 * it got stuck; `logless` everything but logs; `dead` nothing.
 */
export type Silence = 'honest' | 'stuck' | 'logless' | 'dead';

/** A node in front of the real one, which can be made to be silent. */
export interface SilentNode {
  readonly url: string;
  become(silence: Silence): Promise<void>;
  stop(): Promise<void>;
}

interface Question {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

export async function startSilentNode(upstream: string): Promise<SilentNode> {
  let silence: Silence = 'honest';
  let stuckAt = '0x0';
  const ask = async (method: string, params: readonly unknown[]): Promise<Record<string, unknown>> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = { 'content-type': 'application/json' };
    return (await (await fetch(upstream, { method: 'POST', headers, body })).json()) as Record<string, unknown>;
  };
  const answers = {
    honest: ({ method, params }: Question) => ask(method, params),
    stuck: async ({ method, params }: Question) => {
      // What it shows is true, of a block that is long past.
      if (method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash') {
        const answer = await ask(method, params);
        const place = answer['result'] as { readonly blockNumber?: string } | null;
        return place !== null && BigInt(place.blockNumber ?? 0) <= BigInt(stuckAt) ? answer : { result: null };
      }
      if (method === 'eth_getLogs') return { result: [] };
      return ask(
        method,
        params.map((param) => (param === 'latest' ? stuckAt : param)),
      );
    },
    logless: async ({ method, params }: Question) => {
      const answer = await ask(method, params);
      if (method === 'eth_getLogs') return { ...answer, result: [] };
      const receipt = method === 'eth_getTransactionReceipt' ? (answer['result'] as object | null) : null;
      return receipt === null ? answer : { ...answer, result: { ...receipt, logs: [] } };
    },
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (silence === 'dead') return void response.socket?.resetAndDestroy();
    const question = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Question;
    const answer = await answers[silence](question);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...answer, jsonrpc: '2.0', id: question.id }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async become(next) {
      stuckAt = String((await ask('eth_blockNumber', []))['result']);
      silence = next;
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
