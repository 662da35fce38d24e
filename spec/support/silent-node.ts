/** A chain node that withholds what it knows, for specs of how the gateway reads the chain. */

import { answerJson, resetConnection, serveHttp } from './http-server.ts';

/**
 * What the node shows: `honest` everything; `stuck` the chain as it was at that moment; `logless`
 * everything but logs; `dead` nothing.
 */
export type Silence = 'honest' | 'stuck' | 'logless' | 'dead';

/** A proxy of the real node that can be made silent. */
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

/** Starts it, honest at first. */
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
      // The answers are true, of an earlier block.
      if (method === 'eth_getTransactionReceipt' || method === 'eth_getTransactionByHash') {
        const answer = await ask(method, params);
        const mined = answer['result'] as { readonly blockNumber?: string } | null;
        return mined !== null && BigInt(mined.blockNumber ?? 0) <= BigInt(stuckAt) ? answer : { result: null };
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
  const server = await serveHttp(async ({ response, body }) => {
    if (silence === 'dead') return resetConnection(response);
    const question = JSON.parse(body.toString()) as Question;
    const answer = await answers[silence](question);
    answerJson(response, 200, { ...answer, jsonrpc: '2.0', id: question.id });
  });
  return {
    ...server,
    async become(next) {
      stuckAt = String((await ask('eth_blockNumber', []))['result']);
      silence = next;
    },
  };
}
